"""`omni bench serve`: 0 if all requests were answered, 1 if one failed, 2 if nothing could be measured."""

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from datetime import datetime

from omni_contract.cli.command import Command
from omni_runtime.bench import report
from omni_runtime.bench.metrics import summary
from omni_runtime.bench.run import run as run_all
from omni_runtime.bench.settings import BenchError, BenchSettings, add_arguments, settings_from

DONE, FAILED, WRONG, STOPPED = 0, 1, 2, 130


def run(arguments: Namespace) -> int:
    try:
        return _bench(settings_from(arguments))
    except BenchError as error:
        sys.stderr.write(f"omni bench serve: {error}\n")
        return WRONG
    except KeyboardInterrupt:
        return STOPPED


def _bench(settings: BenchSettings) -> int:
    date = datetime.now()
    found = asyncio.run(run_all(settings, sys.stderr))
    figures = summary(found.outcomes, found.duration_s, settings.report)
    sys.stdout.write(report.table(figures, found.outcomes, settings.report.metrics))
    if settings.report.is_saved:
        path = report.save(settings, found.model, report.result(settings, found, figures, date))
        sys.stdout.write(f"saved {path}\n")
    return FAILED if figures["failed"] else DONE


def _configure(parser: ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    add_arguments(kinds.add_parser("serve", help="load an OpenAI-compatible endpoint, and tell how fast it answers"))


command = Command(name="bench", help="measure a served model as its clients see it", configure=_configure, run=run)
