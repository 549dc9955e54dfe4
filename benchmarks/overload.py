"""What overload does to useful work: `python -m benchmarks.overload`.

Three fake stages, the middle one with eight slots and steps that sleep, so that its capacity is known. Requests arrive
by a Poisson process at a multiple of it; goodput counts those answered within their deadline, per second. The queue is
bounded, so what cannot be served is refused at once. `overload.goodput_at_3x` is the goodput at three times the
capacity over the best goodput at any load. The plot shows beside it what the same stages do with a queue that takes
everything.
"""

import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import uvloop

from benchmarks.command_line import options
from benchmarks.ledger import write_entry
from benchmarks.load import answered, closed_loop, open_loop, requester
from benchmarks.plot import log_plot
from benchmarks.stages import FakeStage, running_stages
from omni_contract.api.v1alpha1 import FakeEngine, FrontendLimits
from omni_runtime.orchestrator import Orchestrator

COMMAND = "python -m benchmarks.overload"
PLOT = Path(__file__).parents[1] / "docs" / "images" / "overload.svg"
SLOTS = 8
STEP_S = 0.05
CAPACITY = SLOTS / STEP_S
"""Requests per second, if nothing else took time."""
DEADLINE_S = 1.0
QUEUE = 64
ENDLESS_QUEUE = 100_000
LOADS = (0.5, 0.8, 1.0, 1.5, 2.0, 3.0)
ROUNDS = 3


def stages() -> list[FakeStage]:
    engine = FakeEngine(behavior="delay", delay_seconds=STEP_S)
    return [FakeStage("first"), FakeStage("second", engine, max_in_flight=SLOTS), FakeStage("third")]


async def goodput(orchestrator: Orchestrator, load: float, seconds: float, seed: int) -> float:
    """Over the time until the last answer, so that what waited at the end of the arrivals is no gift."""
    request = requester(orchestrator, timeout_s=DEADLINE_S)
    began_s = time.perf_counter()
    answers = await open_loop(request, load * CAPACITY, seconds, seed)
    return len(answered(answers)) / (time.perf_counter() - began_s)


async def goodputs(seconds: float, queue: int) -> Mapping[float, float]:
    """Medians over the rounds, by load."""
    rounds: dict[float, list[float]] = {load: [] for load in LOADS}
    async with running_stages(stages(), FrontendLimits(max_queue_length=queue)) as running:
        await closed_loop(requester(running.orchestrator), SLOTS, 0.5)
        for seed in range(ROUNDS):
            for load, measured in rounds.items():
                measured.append(await goodput(running.orchestrator, load, seconds, seed))
    return {load: statistics.median(measured) for load, measured in rounds.items()}


async def measure(seconds: float, is_dry: bool) -> None:
    bounded, endless = await goodputs(seconds, QUEUE), await goodputs(seconds, ENDLESS_QUEUE)
    for load, value in bounded.items():
        offered = f"offered {load * CAPACITY:6.0f}/s ({load:g} x capacity)"
        print(f"{offered}: {value:6.1f}/s within {DEADLINE_S:g} s, {endless[load]:6.1f}/s with an endless queue")
    if not is_dry:
        at_3x = bounded[3.0] / max(bounded.values())
        write_entry("overload.goodput_at_3x", round(at_3x, 3), "of the peak", command=COMMAND)
        PLOT.write_text(_plot({f"at most {QUEUE} wait": bounded, "everything waits": endless}))


def _plot(measured: Mapping[str, Mapping[float, float]]) -> str:
    """Requests per second in both directions; nothing in time is drawn as one in a hundred seconds."""
    lines = {
        name: [(load * CAPACITY, max(value, 0.01)) for load, value in goodput.items()]
        for name, goodput in measured.items()
    }
    ticks = {load * CAPACITY: f"{load * CAPACITY:g}" for load in LOADS}
    title = f"Answers within {DEADLINE_S:g} s of stages that can do {CAPACITY:g}/s"
    return log_plot(title, ("requests per second", "answers in time per second"), ticks, lines)


def main() -> int:
    arguments = options(COMMAND, __doc__, "load")
    uvloop.run(measure(arguments.seconds, arguments.dry_run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
