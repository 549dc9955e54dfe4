"""What `omni serve` was asked to do, read once from the command line and the environment."""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from omni_contract.accelerators import Vendor
from omni_contract.wire.logs import LEVELS
from omni_runtime.frontend.media import settings as media
from omni_runtime.frontend.media.settings import MediaSettings
from omni_runtime.local.errors import InputError
from omni_runtime.local.foreign_flags import add_foreign_flags, engine_args_of
from omni_runtime.statistics import settings as statistics
from omni_runtime.statistics.settings import StatsSettings

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
CLAIM = "models"
"""Stands for the folder around a checkpoint that is named as a folder of this machine."""


@dataclass(frozen=True)
class ServeSettings:
    file: Path
    environment: Mapping[str, str]
    """The children's environment too."""
    stage_configs: Path | None = None
    """An old stage file, to be served in place of `file`."""
    checkpoint: str | None = None
    """Where the old file's checkpoint is; None: where `omni convert` would have it."""
    skips_refused: bool = False
    """Whether what of the old file cannot be kept is left out, and told."""
    engine_args: Mapping[str, JsonValue] = field(default_factory=dict)
    """Arguments of vLLM for every ar stage."""
    stage_init_timeout_s: float | None = None
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
    parser.add_argument(
        "file", nargs="?", help="the OmniModel, as for kubectl apply; with --stage-configs-path, the checkpoint"
    )
    parser.add_argument(
        "--stage-configs-path", type=Path, metavar="FILE", help="serve an old stage file, as `omni convert` makes it"
    )
    parser.add_argument("--skip-refused", action="store_true", help="leave out what of it cannot be kept, and say so")
    parser.add_argument("--model", metavar="SOURCE", help="its checkpoint: a folder, or pvc://CLAIM/PATH")
    parser.add_argument(
        "--stage-init-timeout", type=float, metavar="S", help="longest start of a stage (default: as the file says)"
    )
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
    add_foreign_flags(parser)


def settings_from(arguments: Namespace) -> ServeSettings:
    """Raises InputError for what does not go together."""
    file, checkpoint, volumes = _served(arguments)
    return ServeSettings(
        file=file,
        stage_configs=arguments.stage_configs_path,
        checkpoint=checkpoint,
        skips_refused=arguments.skip_refused,
        engine_args=engine_args_of(arguments),
        stage_init_timeout_s=arguments.stage_init_timeout,
        environment=dict(os.environ),
        volumes=(*volumes, *arguments.volume),
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


def _served(arguments: Namespace) -> tuple[Path, str | None, tuple[str, ...]]:
    """The file, and of an old one its checkpoint with the volume that this takes."""
    if arguments.stage_configs_path is None:
        if arguments.file is None:
            raise InputError("name the model's file, or an old stage file with --stage-configs-path")
        if arguments.model is not None:
            raise InputError("--model is for --stage-configs-path; a model file says itself where its checkpoint is")
        return Path(arguments.file), None, ()
    if arguments.file is not None and arguments.model is not None:
        raise InputError("--model says again where the checkpoint is; name it once")
    named = arguments.model or arguments.file
    checkpoint, volumes = (None, ()) if named is None else checkpoint_at(named)
    return arguments.stage_configs_path, checkpoint, volumes


def checkpoint_at(text: str) -> tuple[str, tuple[str, ...]]:
    """Where an old file's checkpoint is, as a source, and the volume that this takes."""
    if text.startswith("pvc://"):
        return text, ()
    folder = Path(text).expanduser().resolve()
    if not folder.is_dir():
        raise InputError(f"{text}: name the checkpoint by a folder of this machine or by pvc://CLAIM/PATH")
    return f"pvc://{CLAIM}/{folder.name}", (f"{CLAIM}={folder.parent}",)
