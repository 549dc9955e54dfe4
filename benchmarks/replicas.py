"""What replicas and routing are worth: `python -m benchmarks.replicas`.

`replicas.efficiency_1to4`: a stage whose device sleeps, one request at a time; the throughput of four replicas over
four times that of one. `routing.p99_vs_random`: requests of mixed sizes on four replicas at 70 % load, each
replica's device shared by what runs there; the 99th percentile with our routing over that with a random choice, same
arrivals, in turns.
"""

import random
import statistics
import sys
import time
from collections.abc import Sequence

import uvloop

from benchmarks.command_line import options
from benchmarks.ledger import write_entry
from benchmarks.load import answered, closed_loop, open_loop, quantile, requester
from benchmarks.stages import FakeStage, running_stages
from omni_contract.api.v1alpha1 import FakeEngine
from omni_runtime.orchestrator.routing import NO_WISH, Candidate, Choose, Wish, choose

COMMAND = "python -m benchmarks.replicas"
STEP_S = 0.01
REPLICAS = 4
MIX = (1, 1, 1, 1, 1, 1, 1, 1, 1, 30)
"""Steps of ten requests: most are short, one is long."""
LOAD = 0.7
ROUNDS = 3


class RandomChoice:
    """What vLLM-Omni does by default: any replica that has room."""

    def __init__(self) -> None:
        self._dice = random.Random(0)

    def __call__(self, candidates: Sequence[Candidate], work_s: float, wish: Wish = NO_WISH) -> Candidate | None:
        return self._dice.choice(candidates) if candidates else None


def stage(replicas: int, max_in_flight: int) -> FakeStage:
    engine = FakeEngine(behavior="delay", delay_seconds=STEP_S, serial=True)
    return FakeStage("sleeper", engine, replicas, max_in_flight)


async def requests_per_s(replicas: int, seconds: float) -> float:
    async with running_stages([stage(replicas, max_in_flight=2)]) as running:
        request = requester(running.orchestrator, steps=(5,))
        await closed_loop(request, 4 * replicas, 0.5)
        began_s = time.perf_counter()
        answers = await closed_loop(request, 4 * replicas, seconds)
        return len(answered(answers)) / (time.perf_counter() - began_s)


async def p99_s(choice: Choose, seconds: float, seed: int) -> float:
    mean_s = STEP_S * statistics.mean(MIX)
    async with running_stages([stage(REPLICAS, max_in_flight=16)], choose=choice) as running:
        shuffled = random.Random(seed).sample(MIX * 100, k=len(MIX) * 100)
        request = requester(running.orchestrator, steps=shuffled)
        await open_loop(request, LOAD * REPLICAS / mean_s, 2)
        answers = await open_loop(request, LOAD * REPLICAS / mean_s, seconds, seed)
        return quantile(answered(answers), 0.99)


async def measure(seconds: float, is_dry: bool) -> None:
    one, four = [], []
    for _ in range(ROUNDS):
        one.append(await requests_per_s(1, seconds))
        four.append(await requests_per_s(REPLICAS, seconds))
    alone, together = statistics.median(one), statistics.median(four)
    efficiency = together / (REPLICAS * alone)
    print(f"1 replica {alone:.1f}/s, {REPLICAS} replicas {together:.1f}/s: {efficiency:.3f} of ideal")
    ours, theirs = [], []
    for seed in range(ROUNDS):
        ours.append(await p99_s(choose, 4 * seconds, seed))
        theirs.append(await p99_s(RandomChoice(), 4 * seconds, seed))
        print(f"p99 of mixed sizes: {ours[-1]:.2f} s, with a random choice {theirs[-1]:.2f} s")
    p99, peer_p99 = statistics.median(ours), statistics.median(theirs)
    if not is_dry:
        write_entry("replicas.efficiency_1to4", round(efficiency, 3), "of ideal", command=COMMAND)
        peer = ("the 99th percentile with a random choice, in s", round(peer_p99, 3))
        write_entry("routing.p99_vs_random", round(p99 / peer_p99, 3), "times", command=COMMAND, peer=peer)


def main() -> int:
    arguments = options(COMMAND, __doc__, "round")
    uvloop.run(measure(arguments.seconds, arguments.dry_run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
