"""Opens the connection to the API server, as the pod's service account or as a kubeconfig says."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from omni_operator.kube.api import KubeApi
from omni_operator.labels import MANAGER


@asynccontextmanager
async def connect() -> AsyncIterator[KubeApi]:
    configuration = Configuration()
    try:
        load_incluster_config(client_configuration=configuration)
    except ConfigException:
        await load_kube_config(client_configuration=configuration)
    async with ApiClient(configuration) as client:
        client.user_agent = MANAGER
        yield KubeApi(client)
