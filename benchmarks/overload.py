"""What overload does to useful work: `python -m benchmarks.overload`.

Three fake stages, the middle one with eight slots and steps that sleep, so that its capacity is known. Requests arrive
by a Poisson process at a multiple of it; goodput counts those answered within their deadline, per second. The queue is
bounded, so what cannot be served is refused at once. `overload.goodput_at_3x` is the goodput at three times the
capacity over the best goodput at any load.
"""

import statistics
import sys
import time
from collections.abc import Mapping

import uvloop

from benchmarks.command_line import options
from benchmarks.ledger import write_entry
from benchmarks.load import answered, closed_loop, open_loop, requester
from benchmarks.stages import FakeStage, running_stages
from omni_contract.api.v1alpha1 import FakeEngine, FrontendLimits
from omni_runtime.orchestrator import Orchestrator

COMMAND = "python -m benchmarks.overload"
SLOTS = 8
STEP_S = 0.05
CAPACITY = SLOTS / STEP_S
"""Requests per second, if nothing else took time."""
DEADLINE_S = 1.0
QUEUE = 64
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


async def goodputs(seconds: float) -> Mapping[float, float]:
    """Medians over the rounds, by load."""
    rounds: dict[float, list[float]] = {load: [] for load in LOADS}
    async with running_stages(stages(), FrontendLimits(max_queue_length=QUEUE)) as running:
        await closed_loop(requester(running.orchestrator), SLOTS, 0.5)
        for seed in range(ROUNDS):
            for load, measured in rounds.items():
                measured.append(await goodput(running.orchestrator, load, seconds, seed))
    return {load: statistics.median(measured) for load, measured in rounds.items()}


async def measure(seconds: float, is_dry: bool) -> None:
    measured = await goodputs(seconds)
    peak = max(measured.values())
    for load, value in measured.items():
        print(f"offered {load * CAPACITY:6.0f}/s ({load:g} x capacity): {value:6.1f}/s within {DEADLINE_S:g} s")
    if not is_dry:
        write_entry("overload.goodput_at_3x", round(measured[3.0] / peak, 3), "of the peak", command=COMMAND)


def main() -> int:
    arguments = options(COMMAND, __doc__, "load")
    uvloop.run(measure(arguments.seconds, arguments.dry_run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
