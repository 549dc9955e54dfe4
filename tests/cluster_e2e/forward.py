"""`kubectl port-forward`, as the chart's notes tell users to do it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.kind.cluster import KindCluster

FRONTEND_PORT = 80


@contextmanager
def port_forward(cluster: KindCluster, namespace: str, target: str, port: int = FRONTEND_PORT) -> Iterator[str]:
    """The URL at which a port of a Service or pod answers on this machine."""
    command = [cluster.programs["kubectl"], "port-forward", "-n", namespace, target, f":{port}"]
    process = subprocess.Popen(command, env=cluster.environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()  # Forwarding from 127.0.0.1:40123 -> 8000
        assert line.startswith("Forwarding from 127.0.0.1:"), f"{target} cannot be forwarded: {line!r}"
        yield "http://" + line.split()[2]
    finally:
        process.terminate()
        process.wait()
