"""The frontend's settings: one frozen object, made from the command line and the pod's environment."""

import argparse
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from omni_contract.wire.logs import LEVELS
from omni_contract.wire.names import FRONTEND_PORT, STAGE_TABLE_PATH
from omni_runtime.administration.listener import AdminAddress, add_admin_arguments, admin_address
from omni_runtime.frontend.media import settings as media
from omni_runtime.frontend.media.settings import MediaSettings
from omni_runtime.statistics import settings as statistics
from omni_runtime.statistics.settings import StatsSettings
from omni_runtime.tracing import settings as tracing
from omni_runtime.tracing.settings import TracingSettings

DEFAULT_BODY_TIMEOUT_S = 30.0
HOST_HELP = "address to listen on (default: %(default)s); 0.0.0.0 is every address of the host"


@dataclass(frozen=True)
class FrontendSettings:
    """`frontend_id` is how workers know this process; `api_keys` is a folder of keys, None leaves the endpoint open."""

    stage_table: Path
    host: str
    port: int
    discovery: Literal["local", "kubernetes"]
    frontend_id: str
    api_keys: Path | None = None
    tls: Path | None = None
    """A folder with the certificate that workers ask for; None reaches them in the clear."""
    log_json: bool = False
    log_level: str = "info"
    drain_timeout_s: float | None = None
    """None: as long as a request may take."""
    body_timeout_s: float = DEFAULT_BODY_TIMEOUT_S
    tracing: TracingSettings = field(default_factory=TracingSettings)
    media: MediaSettings = field(default_factory=MediaSettings)
    stats: StatsSettings = field(default_factory=StatsSettings)
    admin: AdminAddress | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stage-table", type=Path, default=Path(STAGE_TABLE_PATH), help="JSON file of the model")
    parser.add_argument("--host", default="127.0.0.1", help=HOST_HELP)
    parser.add_argument("--port", type=int, default=FRONTEND_PORT, help="port to listen on (default: %(default)s)")
    parser.add_argument(
        "--discovery",
        choices=("local", "kubernetes"),
        default="local",
        help="where replicas are found: the stage table, or the cluster's EndpointSlices (default: %(default)s)",
    )
    parser.add_argument("--api-keys", type=Path, help="folder of files that hold API keys; without it, no key is asked")
    tracing.add_arguments(parser)
    media.add_arguments(parser)
    statistics.add_arguments(parser)
    add_admin_arguments(parser)
    parser.add_argument(
        "--tls",
        type=Path,
        metavar="DIR",
        help="folder with tls.crt, tls.key and ca.crt: speak mutual TLS with the workers",
    )
    parser.add_argument("--log-json", action="store_true", help="write log lines as JSON")
    parser.add_argument(
        "--log-level", choices=LEVELS, default="info", help="from which level on (default: %(default)s)"
    )
    parser.add_argument(
        "--drain-timeout",
        type=float,
        help="seconds that running requests may still take after SIGTERM (default: the model's request timeout)",
    )
    parser.add_argument(
        "--body-timeout",
        type=float,
        default=DEFAULT_BODY_TIMEOUT_S,
        help="seconds within which a request's body must have come (default: %(default)s)",
    )


def settings_from(arguments: argparse.Namespace, environment: Mapping[str, str]) -> FrontendSettings:
    return FrontendSettings(
        stage_table=arguments.stage_table,
        host=arguments.host,
        port=arguments.port,
        discovery=arguments.discovery,
        frontend_id=environment.get("OMNI_POD_NAME") or socket.gethostname(),
        api_keys=arguments.api_keys,
        tls=arguments.tls,
        log_json=arguments.log_json,
        log_level=arguments.log_level,
        drain_timeout_s=arguments.drain_timeout,
        body_timeout_s=arguments.body_timeout,
        tracing=tracing.settings_from(arguments),
        media=media.settings_from(arguments),
        stats=statistics.settings_from(arguments),
        admin=admin_address(arguments),
    )
