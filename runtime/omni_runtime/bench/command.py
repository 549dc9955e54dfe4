"""`omni bench`: 0 if all requests were answered, 1 if one failed, 2 if nothing could be measured.

Of cases with baselines, a figure that is worse is a failure, too.
"""

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from omni_contract.cli.command import Command
from omni_runtime.bench import report
from omni_runtime.bench.cases import held, read_cases
from omni_runtime.bench.metrics import summary
from omni_runtime.bench.run import run as run_all
from omni_runtime.bench.settings import (
    BenchError,
    BenchSettings,
    add_arguments,
    add_place,
    place_from,
    settings_from,
)

DONE, FAILED, WRONG, STOPPED = 0, 1, 2, 130


def run(arguments: Namespace) -> int:
    try:
        if arguments.kind == "cases":
            return _bench_cases(arguments)
        figures = _bench(settings_from(arguments))
        return FAILED if figures["failed"] else DONE
    except BenchError as error:
        sys.stderr.write(f"omni bench {arguments.kind}: {error}\n")
        return WRONG
    except KeyboardInterrupt:
        return STOPPED


def _bench_cases(arguments: Namespace) -> int:
    """Each case in turn; the others are run, too, when one is worse than its baselines."""
    has_failed = False
    for case in read_cases(arguments.file, place_from(arguments)):
        sys.stdout.write(f"\n{case.name}\n")
        saved = replace(case.settings.report, is_saved=True, directory=arguments.result_dir, file=f"{case.name}.json")
        figures = _bench(replace(case.settings, report=saved))
        compared = held(case, figures)
        sys.stdout.writelines(f"{one}\n" for one in compared)
        has_failed |= bool(figures["failed"]) or not all(one.holds for one in compared)
    return FAILED if has_failed else DONE


def _bench(settings: BenchSettings) -> Mapping[str, float]:
    date = datetime.now()
    found = asyncio.run(run_all(settings, sys.stderr))
    figures = summary(found.outcomes, found.duration_s, settings.report)
    sys.stdout.write(report.table(figures, found.outcomes, settings.report.metrics))
    if settings.report.is_saved:
        path = report.save(settings, found.model, report.result(settings, found, figures, date))
        sys.stdout.write(f"saved {path}\n")
    return figures


def _configure(parser: ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    add_arguments(kinds.add_parser("serve", help="load an OpenAI-compatible endpoint, and tell how fast it answers"))
    cases = kinds.add_parser("cases", help="the same for each case in a file, held to the baselines that it has there")
    cases.add_argument("file", type=Path, help="a JSON list of cases")
    add_place(cases)
    cases.add_argument("--result-dir", type=Path, default=Path(), metavar="DIR", help="for a JSON file of each case")


command = Command(name="bench", help="measure a served model as its clients see it", configure=_configure, run=run)
