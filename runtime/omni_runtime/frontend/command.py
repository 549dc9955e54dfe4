"""`omni frontend`: serves one model's endpoint until it is told to end."""

import argparse
import logging
import os

import uvloop
from pydantic import ValidationError

from omni_contract.cli.command import Command
from omni_contract.wire.exit_codes import ExitCode
from omni_contract.wire.logs import configure_logging
from omni_contract.wire.stage_table import StageTable
from omni_runtime.administration.listener import AdminPortError
from omni_runtime.frontend.server import serve
from omni_runtime.frontend.settings import add_arguments, settings_from
from omni_runtime.statistics.files import StatsFilesError
from omni_runtime.tracing.start import MissingTelemetryError
from omni_runtime.transport.protocol import TransportError

logger = logging.getLogger(__name__)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_from(arguments, os.environ)
    configure_logging(settings.log_json, settings.log_level, frontend=settings.frontend_id)
    try:
        table = StageTable.read(settings.stage_table.read_bytes())
    except (OSError, ValidationError) as exc:
        logger.error("stage table %s cannot be used: %s", settings.stage_table, exc)
        return ExitCode.MISCONFIGURED
    try:
        uvloop.run(serve(settings, table))
    except (MissingTelemetryError, StatsFilesError, TransportError) as error:
        logger.error("%s", error)
        return ExitCode.MISCONFIGURED
    except AdminPortError as error:
        logger.error("%s", error)
        return ExitCode.LISTEN_FAILED
    except SystemExit:
        # uvicorn has said that it cannot listen, and where.
        return ExitCode.LISTEN_FAILED
    return ExitCode.OK


command = Command(name="frontend", help="serve a model's OpenAI-compatible endpoint", configure=add_arguments, run=run)
