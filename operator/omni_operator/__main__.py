"""omni-operator: watches OmniModels and makes them run."""

import argparse
import asyncio
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from prometheus_client import start_http_server

from omni_operator.controller import Controller, Identity
from omni_operator.errors import LeaseLost, SettingsError
from omni_operator.handlers.process import run_frame
from omni_operator.kube.connection import connect
from omni_operator.logs import configure_logs
from omni_operator.settings import Settings, load_settings

OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        settings = load_settings(options.config)
    except SettingsError as problem:
        sys.stderr.write(f"omni-operator: {problem}\n")
        return 2
    configure_logs(settings.log)
    start_http_server(settings.metrics_port, addr=options.host)
    identity = Identity(options.identity, options.namespace or _own_namespace())
    return asyncio.run(operate(settings, identity, options.host))


async def operate(settings: Settings, identity: Identity, host: str) -> int:
    """Until SIGTERM or SIGINT, or until another operator may lead; gives the exit status."""
    status = 0
    try:
        await _run(settings, identity, host)
    except* LeaseLost:
        status = 1
    return status


async def _run(settings: Settings, identity: Identity, host: str) -> None:
    async with connect() as kube:
        controller = Controller(kube, settings, identity)
        async with asyncio.TaskGroup() as tasks:
            control = tasks.create_task(controller.run(), name="controller")
            await run_frame(controller, control, host)
            control.cancel()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="omni-operator", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["run"], default="run", help="run the operator (default)")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="settings, JSON or YAML")
    parser.add_argument("--host", default="127.0.0.1", help="address of probes and metrics (default: %(default)s)")
    parser.add_argument("--namespace", help="of the lease; default: the pod's own")
    parser.add_argument("--identity", default=socket.gethostname(), help="name among the operators; default: host name")
    return parser


def _own_namespace() -> str:
    return OWN_NAMESPACE.read_text().strip() if OWN_NAMESPACE.exists() else "default"


if __name__ == "__main__":
    sys.exit(main())
