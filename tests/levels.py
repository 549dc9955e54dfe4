"""Runs the test levels and prints one line for each: `python -m tests.levels unit models ...`.

Levels run side by side in two lanes, and beside them, of less weight, what builds the programs that some need; checks
and unit tests run before, alone.

A level that runs no test has failed, and a skipped test is shown with its reason. In levels of many real processes a
few failed tests run once more, alone; each is named, so that a test which fails now and then is seen and mended. Logs
are in `out/levels/`. With `--record` the times go into the ledger.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Callable, Container
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Lock

LOGS = Path("out/levels")
TEST_LIMIT_S = {"models": 300, "local": 300, "chaos": 300, "control": 600, "cluster": 1200, "cluster-life": 1200}
"""Longer than any test takes on a busy machine: a test that hangs is shown with its stack instead of for ever."""
OTHER_TEST_LIMIT_S = 180
REPEATED = {"models", "api", "connectors", "local", "chaos", "control", "cluster", "cluster-life"}
MOST_REPEATED = 3
STEPS: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("check",),),
    (("unit",), ("unit-runtime",)),
    (
        ("schedules", "models", "api", "connectors", "control", "cluster-life"),
        ("local", "chaos", "cluster-up", "cluster"),
        ("programs", "node-image"),
    ),
)
"""What runs after each other; the lanes of a step run at the same time, the levels of a lane in turn."""
NEEDS = {"control": "programs", "cluster-up": "node-image", "cluster-life": "cluster-up"}
"""Of another lane. A second cluster is made, crashed and removed beside the first, which is up before that begins: what
the second one leaves behind is looked for on the whole host."""
BUILDS = ("nice", "-n", "15")
"""They take what the tests leave of the processors."""
RUNTIME_TESTS = "tests/omni_runtime"
CLUSTER_TESTS = "tests/cluster"
HALVES = ("unit", "unit-runtime")
"""The unit tests, those of the runtime apart, so that both processors have something to do."""
PARTS = {"unit": HALVES, "cluster": ("cluster-up", "cluster", "cluster-life")}
"""Levels of which whoever names the first means all."""
MARKED = ("schedules", "models", "api", "connectors", "local", "chaos", "control", "cluster")
TELLING = Lock()
"""Held by the lane that prints."""
COUNT = re.compile(r"(\d+) (passed|failed|error|errors|skipped|deselected)")


@dataclass(frozen=True)
class Level:
    """What one level runs; `counts_tests` is false for checks and for what builds the programs of later levels."""

    name: str
    command: tuple[str, ...]
    counts_tests: bool = True


@dataclass(frozen=True)
class Outcome:
    level: str
    seconds: float
    passed: int
    failed: int
    skipped: int
    is_green: bool
    repeated: tuple[str, ...] = ()
    """Tests that failed and passed when they ran once more."""


def pytest_level(name: str, expression: str, *where: str) -> Level:
    """`where` names folders and options of its own; all tests if there is none."""
    limit = (f"--timeout={TEST_LIMIT_S.get(name, OTHER_TEST_LIMIT_S)}", "--timeout-method=thread")
    # Of its own, so that levels side by side do not mix up which tests failed last.
    cache = ("-o", f"cache_dir={LOGS / 'cache' / name}")
    options = ("-q", "-m", expression, "--durations=25", *limit, *cache)
    return Level(name, (sys.executable, "-m", "pytest", *options, *(where or ("tests",))))


def cluster_step(name: str, *before: str) -> Level:
    return Level(name, (*before, sys.executable, "-m", "tests.cluster", name), counts_tests=False)


def known_levels() -> dict[str, Level]:
    """By name, in the order of STEPS."""
    unmarked = " and ".join(f"not {marker}" for marker in (*MARKED, "gpu"))
    levels = {
        "check": Level(
            "check",
            ("make", "-j2", "--output-sync", "format", "lint", "types", "generated", "cases"),
            counts_tests=False,
        ),
        "unit": pytest_level("unit", unmarked, "tests", f"--ignore={RUNTIME_TESTS}"),
        "unit-runtime": pytest_level("unit-runtime", unmarked, RUNTIME_TESTS),
        "programs": cluster_step("programs", *BUILDS),
        "node-image": cluster_step("node-image", *BUILDS),
        "cluster-up": cluster_step("cluster-up"),
        **{marker: pytest_level(marker, marker) for marker in MARKED},
        "cluster": pytest_level("cluster", "cluster", "tests", f"--ignore={CLUSTER_TESTS}"),
        "cluster-life": pytest_level("cluster-life", "cluster", CLUSTER_TESTS),
    }
    return {name: levels[name] for step in STEPS for lane in step for name in lane}


def run_levels(names: Container[str], run: Callable[[Level], Outcome]) -> list[Outcome]:
    """All that are named, each once the one that it needs has ended, if that is named, too."""
    levels = known_levels()
    ended = {name: Event() for name in levels if name in names}

    def run_in_turn(name: str) -> Outcome:
        if (needed := ended.get(NEEDS.get(name, ""))) is not None:
            needed.wait()
        try:
            return run(levels[name])
        finally:
            ended[name].set()

    def run_lane(lane: tuple[str, ...]) -> list[Outcome]:
        return [run_in_turn(name) for name in lane if name in names]

    results: list[Outcome] = []
    for step in STEPS:
        with ThreadPoolExecutor(len(step)) as lanes:
            results += [result for lane in lanes.map(run_lane, step) for result in lane]
    return results


def run_and_show(level: Level) -> Outcome:
    return shown(run_level(level))


def run_level(level: Level) -> Outcome:
    first = _run(level, LOGS / f"{level.name}.log")
    if first.is_green or level.name not in REPEATED or not 0 < first.failed <= MOST_REPEATED:
        return first
    again = replace(level, command=(*level.command, "--last-failed", "--last-failed-no-failures=none"))
    second = _run(again, LOGS / f"{level.name}-again.log")
    seconds = first.seconds + second.seconds
    if not second.is_green or second.passed < first.failed:
        return replace(first, seconds=seconds)
    failed = failed_tests((LOGS / f"{level.name}.log").read_text(errors="replace"))
    passed = first.passed + second.passed
    return replace(first, seconds=seconds, passed=passed, failed=0, is_green=True, repeated=failed)


def _run(level: Level, log: Path) -> Outcome:
    started = time.monotonic()
    with log.open("wb") as output:
        code = subprocess.run(level.command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    return outcome(level, code, time.monotonic() - started, log.read_text(errors="replace"))


def failed_tests(text: str) -> tuple[str, ...]:
    return tuple(line.split()[1] for line in text.splitlines() if line.startswith(("FAILED ", "ERROR ")))


def outcome(level: Level, code: int, seconds: float, text: str) -> Outcome:
    """Reads pytest's closing line; a level of tests is green only if at least one of them passed."""
    lines = [line for line in text.splitlines() if COUNT.search(line) and " in " in line]
    counts = (
        {kind.removesuffix("s") if kind == "errors" else kind: int(n) for n, kind in COUNT.findall(lines[-1])}
        if lines
        else {}
    )
    passed, failed = counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)
    is_green = code == 0 and (passed > 0 or not level.counts_tests)
    return Outcome(level.name, seconds, passed, failed, counts.get("skipped", 0), is_green)


def shown(result: Outcome) -> Outcome:
    with TELLING:
        show(result)
        explain(result)
    return result


def show(result: Outcome) -> None:
    state = "ok    " if result.is_green else "FAILED"
    skipped = f", {result.skipped} skipped" if result.skipped else ""
    print(
        f"{result.level:<13}{state} {result.seconds:7.1f} s  {result.passed} passed, {result.failed} failed{skipped}",
        flush=True,
    )


def explain(result: Outcome) -> None:
    """What a person needs first: the end of the log of a red level, the reasons of skipped tests."""
    lines = (LOGS / f"{result.level}.log").read_text(errors="replace").splitlines()
    if not result.is_green:
        print(f"--- end of {LOGS / result.level}.log", *lines[-60:], sep="\n", flush=True)
    for test in result.repeated:
        print(f"           passed only when it ran again: {test}", flush=True)
    if result.is_green and result.skipped:
        print(*(line for line in lines if line.startswith("SKIPPED")), sep="\n", flush=True)


def record(results: list[Outcome], took_s: float) -> None:
    from benchmarks.ledger import write_entry

    seconds = {result.level: result.seconds for result in results}
    write_entry("test.unit_s", round(max(seconds[name] for name in HALVES), 1), "s", command="make test-unit")
    if set(seconds) == set(known_levels()):
        write_entry("test.all_warm_s", round(took_s, 1), "s", command="make test")


def main() -> int:
    levels = known_levels()
    parser = argparse.ArgumentParser(prog="python -m tests.levels", description=__doc__)
    parser.add_argument("levels", nargs="*", default=list(levels), metavar="LEVEL", help=", ".join(levels))
    parser.add_argument("--record", action="store_true", help="write the times into benchmarks/results.json")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.levels if name not in levels]:
        parser.error(f"unknown level {unknown[0]!r}; known: {', '.join(levels)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    began_s = time.monotonic()
    results = run_levels({part for name in arguments.levels for part in PARTS.get(name, (name,))}, run_and_show)
    took_s = time.monotonic() - began_s
    failed = sum(result.failed or (not result.is_green) for result in results)
    if arguments.record and not failed:
        record(results, took_s)
    print(f"{sum(result.passed for result in results)} passed, {failed} failed in {took_s:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
