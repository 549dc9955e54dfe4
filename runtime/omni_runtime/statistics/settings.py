"""Whether each request's statistics are told, and where: flags of the frontend."""

import argparse
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StatsSettings:
    """Without either, workers are not asked for what only they know."""

    is_logged: bool = False
    directory: Path | None = None

    @property
    def is_on(self) -> bool:
        return self.is_logged or self.directory is not None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-stats", action="store_true", help="log a table of what each request took, stage by stage"
    )
    parser.add_argument(
        "--stats-dir", type=Path, metavar="DIR", help="write what each request took into JSON lines files there"
    )


def settings_from(arguments: argparse.Namespace) -> StatsSettings:
    return StatsSettings(arguments.log_stats, arguments.stats_dir)
