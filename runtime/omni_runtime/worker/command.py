"""`omni worker`, the same as `python -m omni_runtime.worker`."""

import argparse
import logging
import os
from pathlib import Path

import uvloop
from pydantic import ValidationError

from omni_contract.cli.command import Command
from omni_contract.wire.exit_codes import ExitCode
from omni_contract.wire.logs import configure_logging
from omni_contract.wire.stage_file import StageFile
from omni_runtime.administration.listener import AdminPortError
from omni_runtime.garbage import look_rarely
from omni_runtime.worker.errors import MisconfiguredError, WorkerError, one_line
from omni_runtime.worker.process import die_with_parent, run_worker
from omni_runtime.worker.settings import add_arguments, settings_from

logger = logging.getLogger(__name__)


def run(arguments: argparse.Namespace) -> int:
    if arguments.die_with_parent:
        die_with_parent()
    look_rarely()
    settings = settings_from(arguments, os.environ)
    configure_logging(settings.log_json, settings.log_level, replica=settings.replica)
    try:
        file = _read(settings.stage_file)
        configure_logging(settings.log_json, settings.log_level, replica=settings.replica, stage=file.stage)
        uvloop.run(run_worker(settings, file))
    except WorkerError as error:
        logger.error("%s", error)
        return error.exit_code
    except AdminPortError as error:
        logger.error("%s", error)
        return ExitCode.LISTEN_FAILED
    return ExitCode.OK


def _read(path: Path) -> StageFile:
    try:
        return StageFile.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise MisconfiguredError(f"stage file {path} cannot be used: {one_line(str(error))}") from error


command = Command(name="worker", help="run one stage of a model", configure=add_arguments, run=run)
