"""The operator as a process beside the test, with the configuration and the account that the chart gave it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.cluster.control import ControlPlane
from tests.support.helm import NAMESPACE, RELEASE
from tests.support.model_processes import free_ports

END_TIMEOUT_S = 20


@contextmanager
def installed_operator(plane: ControlPlane, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The chart must be installed; its pod is not needed. Ends like a pod: SIGTERM, and 0 is expected."""
    log = folder / "operator.log"
    command = [sys.executable, "-m", "omni_operator", "--config", _config(plane, folder), "--namespace", NAMESPACE]
    kubeconfig = plane.kubeconfig_for_service_account(NAMESPACE, RELEASE)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env={**os.environ, "KUBECONFIG": str(kubeconfig)}, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_TIMEOUT_S) == 0, log.read_text()[-4000:]
    finally:
        process.kill()
        process.wait()


def _config(plane: ControlPlane, folder: Path) -> Path:
    """As in the cluster, but for the ports, which other processes of this machine may hold."""
    output = r"jsonpath={.data.config\.yaml}"
    settings = yaml.safe_load(plane.kubectl("get", "configmap", f"{RELEASE}-config", "-n", NAMESPACE, "-o", output))
    probe, metrics = free_ports(2)
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({**settings, "probePort": probe, "metricsPort": metrics}))
    return path
