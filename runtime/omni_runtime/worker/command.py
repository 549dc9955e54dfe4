"""`omni worker`, the same as `python -m omni_runtime.worker`."""

import argparse
import logging
import os

import uvloop
from pydantic import ValidationError

from omni_contract.cli.command import Command
from omni_contract.wire.logs import configure_logging
from omni_contract.wire.stage_file import StageFile
from omni_runtime.plugins import MissingExtraError
from omni_runtime.worker.process import ExitCode, ListenError, die_with_parent, run_worker
from omni_runtime.worker.settings import add_arguments, settings_from

logger = logging.getLogger(__name__)


def run(arguments: argparse.Namespace) -> int:
    if arguments.die_with_parent:
        die_with_parent()
    settings = settings_from(arguments, os.environ)
    configure_logging(settings.log_json, replica=settings.replica)
    try:
        file = StageFile.model_validate_json(settings.stage_file.read_bytes())
    except (OSError, ValidationError) as error:
        logger.error("stage file %s cannot be used: %s", settings.stage_file, error)
        return ExitCode.LOAD_FAILED
    configure_logging(settings.log_json, replica=settings.replica, stage=file.stage)
    try:
        return uvloop.run(run_worker(settings, file))
    except MissingExtraError as error:
        logger.error("%s", error)
        return ExitCode.LOAD_FAILED
    except ListenError as error:
        logger.error("%s", error)
        return ExitCode.LISTEN_FAILED


command = Command(name="worker", help="run one stage of a model", configure=add_arguments, run=run)
