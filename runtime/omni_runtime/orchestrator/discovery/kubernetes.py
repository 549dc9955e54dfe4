"""Discovery in a cluster: the stage table from its ConfigMap, replicas from the EndpointSlices of the stages' Services.

Both are listed, then watched. While the API server is away, the last picture stays: requests do not depend on it.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
from kubernetes.aio import client, config, watch
from kubernetes.aio.client.exceptions import ApiException
from pydantic import ValidationError

from omni_contract.wire.names import STAGE_PORT, STAGE_TABLE_KEY, stage_table_config_map
from omni_contract.wire.stage_table import StageTable
from omni_runtime.orchestrator.discovery.protocol import Topology

logger = logging.getLogger(__name__)

SERVICE_LABEL = "kubernetes.io/service-name"
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
WATCH_S = 240
ANSWER_MARGIN_S = 20
"""A watch that is silent for longer than its own end has lost its connection."""


def in_cluster() -> client.ApiClient:
    """A client with the pod's service account."""
    configuration = client.Configuration()
    config.load_incluster_config(client_configuration=configuration)
    return client.ApiClient(configuration)


class KubernetesDiscovery:
    """Starts from the mounted stage table, which may lag behind the ConfigMap that it follows."""

    def __init__(self, table: StageTable, connect: Callable[[], client.ApiClient] = in_cluster) -> None:
        self._table = table
        self._connect = connect
        self._slices: dict[str, Any] = {}
        self._has_listed = False
        self._changed = asyncio.Event()
        self._services_valid: asyncio.Timeout | None = None

    async def topologies(self) -> AsyncIterator[Topology]:
        async with self._connect() as api:
            following = asyncio.create_task(self._follow(api), name="kubernetes discovery")
            try:
                while not following.done():
                    await self._changed.wait()
                    self._changed.clear()
                    yield Topology(self._table, addresses_of(self._table, self._slices.values()))
            finally:
                following.cancel()
                with suppress(asyncio.CancelledError):
                    await following

    async def _follow(self, api: client.ApiClient) -> None:
        try:
            async with asyncio.TaskGroup() as watches:
                watches.create_task(_kept_up(lambda: self._follow_table(client.CoreV1Api(api))))
                watches.create_task(_kept_up(lambda: self._follow_slices(client.DiscoveryV1Api(api))))
        finally:
            # Whoever waits for a change must see the end.
            self._changed.set()

    async def _follow_table(self, api: client.CoreV1Api) -> None:
        name = stage_table_config_map(self._table.model)
        query = {"namespace": self._table.namespace, "field_selector": f"metadata.name={name}"}
        listed = await api.list_namespaced_config_map(**query)
        for config_map in listed.items:
            self._take_table(config_map)
        async for kind, config_map in _changes(api.list_namespaced_config_map, listed, query):
            if kind != "DELETED":
                self._take_table(config_map)

    def _take_table(self, config_map: Any) -> None:
        try:
            table = StageTable.read((config_map.data or {}).get(STAGE_TABLE_KEY, ""))
        except ValidationError as exc:
            logger.error("stage table %s cannot be used, keeping the last: %s", config_map.metadata.name, exc)
            return
        if services_of(table) != services_of(self._table) and self._services_valid is not None:
            self._services_valid.reschedule(0)
        self._table = table
        if self._has_listed:
            self._changed.set()

    async def _follow_slices(self, api: client.DiscoveryV1Api) -> None:
        """Until the stages' Services are others. A new list replaces all that was known, so nothing deleted stays."""
        services = ",".join(services_of(self._table))
        query = {"namespace": self._table.namespace, "label_selector": f"{SERVICE_LABEL} in ({services})"}
        async with self._while_services_stay():
            listed = await api.list_namespaced_endpoint_slice(**query)
            self._slices = {item.metadata.name: item for item in listed.items}
            self._has_listed = True
            self._changed.set()
            async for kind, item in _changes(api.list_namespaced_endpoint_slice, listed, query):
                self._take_slice(kind, item)

    @asynccontextmanager
    async def _while_services_stay(self) -> AsyncIterator[None]:
        async with asyncio.timeout(None) as self._services_valid:
            try:
                yield
            finally:
                self._services_valid = None

    def _take_slice(self, kind: str, item: Any) -> None:
        if kind == "DELETED":
            self._slices.pop(item.metadata.name, None)
        else:
            self._slices[item.metadata.name] = item
        self._changed.set()


def services_of(table: StageTable) -> list[str]:
    return sorted(stage.service for stage in table.stages if stage.service)


def addresses_of(table: StageTable, slices: Iterable[Any]) -> Mapping[str, frozenset[str]]:
    """Where each stage's replicas take work: endpoints that serve and do not terminate."""
    by_service: dict[str, set[str]] = defaultdict(set)
    for item in slices:
        by_service[item.metadata.labels[SERVICE_LABEL]].update(_addresses(item))
    return {stage.name: frozenset(by_service[stage.service]) for stage in table.stages if stage.service}


def _addresses(item: Any) -> Iterable[str]:
    port = item.ports[0].port if item.ports else STAGE_PORT
    for endpoint in item.endpoints or ():
        if _takes_work(endpoint.conditions):
            host = endpoint.addresses[0]
            yield f"[{host}]:{port}" if item.address_type == "IPv6" else f"{host}:{port}"


def _takes_work(conditions: Any) -> bool:
    """`serving` may be unset, which means the same as `ready`; `ready` unset means true."""
    ready = conditions.ready is not False
    serving = ready if conditions.serving is None else conditions.serving
    return bool(serving) and not conditions.terminating


async def _changes(list_call: Any, listed: Any, query: Mapping[str, str]) -> AsyncIterator[tuple[str, Any]]:
    """What happens after a list, until the server ends the watch."""
    stream = watch.Watch().stream(
        list_call,
        **query,
        resource_version=listed.metadata.resource_version,
        timeout_seconds=WATCH_S,
        _request_timeout=WATCH_S + ANSWER_MARGIN_S,
    )
    async with stream as events:
        async for event in events:
            if not isinstance(event, dict):
                # The client hands an error page on as text.
                raise ApiException(reason=str(event).strip())
            yield event["type"], event["object"]


async def _kept_up(follow: Callable[[], Awaitable[None]]) -> None:
    """Lists and watches again whenever a watch ends, at a growing distance while that fails."""
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            await follow()
            pause_s = FIRST_PAUSE_S
        except TimeoutError:
            pause_s = FIRST_PAUSE_S
        except (ApiException, aiohttp.ClientError, OSError) as exc:
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            logger.warning("the API server cannot be asked, keeping what is known: %s", _reason(exc))
        await asyncio.sleep(pause_s)


def _reason(exc: Exception) -> str:
    return f"{exc.status} {exc.reason}" if isinstance(exc, ApiException) else str(exc) or type(exc).__name__
