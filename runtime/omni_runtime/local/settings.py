"""What `omni serve` was asked to do, read once from the command line and the environment."""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from omni_contract.accelerators import Vendor
from omni_contract.wire.logs import LEVELS
from omni_runtime.frontend.media import settings as media
from omni_runtime.frontend.media.settings import MediaSettings
from omni_runtime.statistics import settings as statistics
from omni_runtime.statistics.settings import StatsSettings

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000


@dataclass(frozen=True)
class ServeSettings:
    file: Path
    environment: Mapping[str, str]
    """The children's environment too."""
    volumes: tuple[str, ...] = ()
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    device: Vendor | None = None
    api_keys: Path | None = None
    picture: Path | None = None
    trace_dir: Path | None = None
    profile_dir: Path | None = None
    stats: StatsSettings = field(default_factory=StatsSettings)
    media: MediaSettings = field(default_factory=MediaSettings)
    admin_port: int | None = None
    allow_fake_engine: bool = False
    log_json: bool = False
    log_level: str | None = None
    """None: what the file says."""
    is_terminal: bool = False
    created: int = 0


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the OmniModel, as for kubectl apply")
    parser.add_argument(
        "--volume", action="append", default=[], metavar="CLAIM=DIR", help="the folder of a claim; may be repeated"
    )
    parser.add_argument("--host", default=DEFAULT_HOST, help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes a free one (default: %(default)s)")
    parser.add_argument(
        "--device", type=Vendor, choices=list(Vendor), help="run every stage on this, whatever pool the file names"
    )
    parser.add_argument("--api-keys", type=Path, metavar="DIR", help="folder with one API key per file")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="save a first picture, then go on serving")
    parser.add_argument("--trace-dir", type=Path, metavar="DIR", help="write spans there, for `omni trace`")
    parser.add_argument(
        "--profile-dir", type=Path, metavar="DIR", help="write profiles there, for `omni control start-profile`"
    )
    statistics.add_arguments(parser)
    media.add_arguments(parser)
    parser.add_argument("--admin-port", type=int, help="serve the control calls over HTTP on this port of this host")
    parser.add_argument("--allow-fake-engine", action="store_true", help="accept stages without a model, for tests")
    parser.add_argument("--log-json", action="store_true", help="log lines as JSON objects")
    parser.add_argument(
        "--log-level", choices=LEVELS, help="from which level on (default: as the file says for each process)"
    )


def settings_from(arguments: Namespace) -> ServeSettings:
    return ServeSettings(
        file=arguments.file,
        environment=dict(os.environ),
        volumes=tuple(arguments.volume),
        host=arguments.host,
        port=arguments.port,
        device=arguments.device,
        api_keys=arguments.api_keys,
        picture=arguments.picture,
        trace_dir=arguments.trace_dir,
        profile_dir=arguments.profile_dir,
        stats=statistics.settings_from(arguments),
        media=media.settings_from(arguments),
        admin_port=arguments.admin_port,
        allow_fake_engine=arguments.allow_fake_engine,
        log_json=arguments.log_json,
        log_level=arguments.log_level,
        is_terminal=sys.stderr.isatty(),
        created=int(time.time()),
    )
