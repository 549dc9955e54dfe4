"""The worker's settings: read once in `main` from the command line and the pod's environment, then passed down."""

import argparse
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from omni_contract.wire.logs import LEVELS
from omni_contract.wire.names import STAGE_FILE_PATH, STAGE_PORT
from omni_runtime.administration.listener import AdminAddress, add_admin_arguments, admin_address
from omni_runtime.tracing import settings as tracing
from omni_runtime.tracing.settings import TracingSettings

DEFAULT_PAYLOAD_LIMIT_BYTES = 4 * 2**30
DEFAULT_SHARED_MEMORY = Path("/dev/shm")
DEFAULT_LIVENESS_TIMEOUT_S = 120.0
ANY_ADDRESS = ("0.0.0.0", "[::]")
LISTEN_HELP = '"HOST:PORT" or "unix:PATH" (default: %(default)s); "0.0.0.0:PORT" listens on every address of the host'


@dataclass(frozen=True)
class WorkerSettings:
    """`advertise` is the address that goes into handles; `locality` is equal for workers that share memory.

    Probes and metrics listen on the host of `listen`. Without `admin` nothing is served there; without `profile_dir`
    profiles are refused.
    """

    stage_file: Path
    listen: str
    advertise: str
    replica: str
    locality: str
    namespace: str = "default"
    tls: Path | None = None
    """None: in the clear."""
    pipe_port: int | None = None
    """Of the host of `listen`; None is two above that of `listen`, 0 any that is free."""
    health_port: int | None = None
    metrics_port: int | None = None
    log_json: bool = False
    log_level: str = "info"
    die_with_parent: bool = False
    payload_limit_bytes: int = DEFAULT_PAYLOAD_LIMIT_BYTES
    shared_memory: Path = DEFAULT_SHARED_MEMORY
    liveness_timeout_s: float = DEFAULT_LIVENESS_TIMEOUT_S
    admin: AdminAddress | None = None
    profile_dir: Path | None = None
    tracing: TracingSettings = field(default_factory=TracingSettings)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stage-file", type=Path, default=Path(STAGE_FILE_PATH), help="JSON file of the stage")
    parser.add_argument("--listen", default=f"127.0.0.1:{STAGE_PORT}", help=LISTEN_HELP)
    parser.add_argument("--advertise", help="address that other workers dial; default: the pod's, else --listen")
    parser.add_argument("--replica", help="name of this replica; default: the pod's, else the host's")
    parser.add_argument(
        "--tls",
        type=Path,
        metavar="DIR",
        help="folder with tls.crt, tls.key and ca.crt: speak mutual TLS with frontends and other workers",
    )
    parser.add_argument("--namespace", help="part of the certificate's name; default: the pod's, else \"default\"")
    parser.add_argument(
        "--pipe-port",
        type=int,
        help="take the pipes of frontends on this port, 0 for any that is free (default: two above that of --listen)",
    )
    parser.add_argument("--health-port", type=int, help="answer health checks on this port, too, without TLS")
    parser.add_argument("--metrics-port", type=int, help="serve Prometheus metrics over HTTP on this port")
    add_admin_arguments(parser)
    parser.add_argument("--profile-dir", type=Path, help="folder for traces; without it, profiles are refused")
    tracing.add_arguments(parser)
    parser.add_argument("--log-json", action="store_true", help="write log lines as JSON")
    parser.add_argument(
        "--log-level", choices=LEVELS, default="info", help="from which level on (default: %(default)s)"
    )
    parser.add_argument("--die-with-parent", action="store_true", help="be killed when the parent process ends")
    parser.add_argument(
        "--payload-limit-bytes",
        type=int,
        default=DEFAULT_PAYLOAD_LIMIT_BYTES,
        help="payloads held for other stages at most (default: %(default)s)",
    )
    parser.add_argument(
        "--shared-memory",
        type=Path,
        metavar="DIR",
        default=DEFAULT_SHARED_MEMORY,
        help="folder in memory for payloads that processes of this host share (default: %(default)s)",
    )
    parser.add_argument(
        "--liveness-timeout",
        type=float,
        default=DEFAULT_LIVENESS_TIMEOUT_S,
        help="seconds without an engine step, with requests running, after which the worker reports itself dead "
        "(default: %(default)s)",
    )


def settings_from(arguments: argparse.Namespace, environment: Mapping[str, str]) -> WorkerSettings:
    host = socket.gethostname()
    return WorkerSettings(
        stage_file=arguments.stage_file,
        listen=arguments.listen,
        advertise=arguments.advertise or _pod_address(arguments.listen, environment),
        replica=arguments.replica or environment.get("OMNI_POD_NAME") or host,
        locality=host,
        namespace=arguments.namespace or environment.get("OMNI_NAMESPACE") or "default",
        tls=arguments.tls,
        pipe_port=arguments.pipe_port,
        health_port=arguments.health_port,
        metrics_port=arguments.metrics_port,
        log_json=arguments.log_json,
        log_level=arguments.log_level,
        die_with_parent=arguments.die_with_parent,
        payload_limit_bytes=arguments.payload_limit_bytes,
        shared_memory=arguments.shared_memory,
        liveness_timeout_s=arguments.liveness_timeout,
        admin=admin_address(arguments),
        profile_dir=arguments.profile_dir,
        tracing=tracing.settings_from(arguments),
    )


def _pod_address(listen: str, environment: Mapping[str, str]) -> str:
    """A pod listens on all addresses, which nobody can dial; it is reached by its own."""
    host, _, port = listen.rpartition(":")
    pod_ip = environment.get("OMNI_POD_IP")
    if not pod_ip or host not in ANY_ADDRESS:
        return listen
    return f"[{pod_ip}]:{port}" if ":" in pod_ip else f"{pod_ip}:{port}"
