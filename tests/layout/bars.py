"""The size bars of CONTRIBUTING.md. `python -m tests.layout.bars` prints each figure and fails if one is over."""

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tests.layout.source import Source, our_sources

VAGUE_NAMES = {"base_v2", "common", "helper", "helpers", "manager", "misc", "stuff", "util", "utils"}
MARKS = ("TODO", "FIXME", "XXX", "HACK")


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    bar: float

    @property
    def is_over(self) -> bool:
        return self.value > self.bar


def figures(sources: Sequence[Source]) -> list[Figure]:
    """Every bar is an upper bound."""
    functions = [function for source in sources for function in source.functions]
    lengths = sorted(function.code_lines for function in functions)
    environment = {name: source.name for source in sources for name in source.environment_names}
    return [
        Figure("median function", statistics.median(lengths), 9),
        Figure("90th percentile of functions", lengths[int(0.9 * len(lengths))], 30),
        Figure("% of functions over 50 lines", _percent([length > 50 for length in lengths]), 1.5),
        Figure("functions over 80 lines", sum(length > 80 for length in lengths), 0),
        Figure("largest file", max(source.line_count for source in sources), 400),
        Figure("% of functions over 6 arguments", _percent([one.arguments > 7 for one in functions]), 1.5),
        Figure("functions without return type", sum(not one.has_return_type for one in functions), 0),
        Figure("environment names read", len(environment), 15),
        Figure("files that read the environment", len(set(environment.values())), 2),
        Figure("vague module names", sum(_is_vague(source.name) for source in sources), 0),
        Figure("marks of unfinished work", sum(_marks(source) for source in sources), 0),
    ]


def _percent(answers: list[bool]) -> float:
    return round(100 * sum(answers) / len(answers), 2)


def _is_vague(path: str) -> bool:
    return bool(VAGUE_NAMES & set(path.removesuffix(".py").split("/")))


def _marks(source: Source) -> int:
    return sum(any(mark in line for mark in MARKS) for line in source.text.splitlines())


def _longest(sources: Sequence[Source], count: int) -> list[str]:
    functions = sorted((one for source in sources for one in source.functions), key=lambda one: -one.code_lines)
    return [f"  {one.code_lines:4} {one.where} {one.name}" for one in functions[:count]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longest", type=int, default=0, metavar="N", help="show the N longest functions")
    options = parser.parse_args()
    sources = our_sources()
    table = figures(sources)
    for figure in table:
        print(f"{'OVER' if figure.is_over else 'ok':5}{figure.name:34}{figure.value:>8g} (bar {figure.bar:g})")
    print(*_longest(sources, options.longest), sep="\n", end="")
    return int(any(figure.is_over for figure in table))


if __name__ == "__main__":
    sys.exit(main())
