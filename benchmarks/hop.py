"""What one hop between frontend and stage costs: `python -m benchmarks.hop`.

Three fake stages in processes of their own, driven by the orchestrator in this one; HTTP is left out. A hop is a
request's time from end to end, less the stages' delays, divided by three. The peers run in turns with ours: bare
grpc.aio with one call for each request and hop, and three processes in a row with multiprocessing queues between them.

Closed loop at several numbers of requests in flight, and an open loop whose requests come by a Poisson process at 30 %
of what ours can do at most. There the stages answer at once, so that with many in flight somebody is always saturated:
a hop is then nothing but (requests in flight) / (3 x throughput), whatever a message takes on its way. So another
closed loop, `*.stage_10ms`, has stages that take 10 ms, as work on a device does; it shows what a hop adds to that.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import uvloop

from benchmarks.cpu import cpu_s
from benchmarks.hop_sides import STAGES, MakeSide, Side, bare_grpc, ours, queues
from benchmarks.ledger import write_entry
from benchmarks.load import Answer, Request, answered, open_loop

COMMAND = "python -m benchmarks.hop"
GRPC, QUEUES = "bare grpc.aio, one call per request and hop", "multiprocessing queues in a row"
SIDES: Mapping[str, MakeSide] = {"ours": ours, GRPC: bare_grpc, QUEUES: queues}
STAGE_DELAY_S = 0.01
DELAYED_SIDES: Mapping[str, MakeSide] = {"ours": partial(ours, STAGE_DELAY_S), GRPC: partial(bare_grpc, STAGE_DELAY_S)}
CONCURRENCIES = (1, 64, 512)
DELAYED_CONCURRENCY = 64
OPEN_LOAD = 0.3
WARM_UP = 200
ROUNDS = 3
ROUND_TIMEOUT_S = 300


@dataclass(frozen=True)
class Measured:
    """One round at one concurrency; CPU time is that of all of the side's processes."""

    hop_ms: float
    requests_per_s: float
    cpu_ms: float


@dataclass(frozen=True)
class Results:
    """Rounds by side and concurrency, those with stages that take their time, and the hops of our open loop."""

    closed: dict[str, dict[int, list[Measured]]] = field(
        default_factory=lambda: {side: {concurrency: [] for concurrency in CONCURRENCIES} for side in SIDES}
    )
    delayed: dict[str, list[Measured]] = field(default_factory=lambda: {side: [] for side in DELAYED_SIDES})
    open_ms: list[float] = field(default_factory=list)

    def delayed_hop_ms(self, side: str) -> float:
        return statistics.median(measured.hop_ms for measured in self.delayed[side])

    def hop_ms(self, side: str, concurrency: int) -> float:
        return statistics.median(measured.hop_ms for measured in self.closed[side][concurrency])

    def requests_per_s(self, side: str, concurrency: int) -> float:
        return statistics.median(measured.requests_per_s for measured in self.closed[side][concurrency])

    def cpu_ms(self, side: str, concurrency: int) -> float:
        return statistics.median(measured.cpu_ms for measured in self.closed[side][concurrency])

    def saturation(self, side: str) -> float:
        """The best throughput at any concurrency."""
        return max(self.requests_per_s(side, concurrency) for concurrency in CONCURRENCIES)


async def closed_loop(side: Side, concurrency: int, count: int) -> Measured:
    """So many clients, each sending its next request when the one before is answered."""
    answers: list[Answer] = []
    numbers = iter(range(count))

    async def client() -> None:
        for number in numbers:
            answers.append(await side.request(number))

    began_s, began_cpu_s = time.perf_counter(), cpu_s(side.pids)
    async with asyncio.timeout(ROUND_TIMEOUT_S):
        await asyncio.gather(*(client() for _ in range(concurrency)))
    took_s, took_cpu_s = time.perf_counter() - began_s, cpu_s(side.pids) - began_cpu_s
    hop_ms = median_hop_ms(answers, side.delay_s)
    return Measured(hop_ms, count / took_s, took_cpu_s / count / len(STAGES) * 1000)


def median_hop_ms(answers: list[Answer], delay_s: float = 0.0) -> float:
    return (statistics.median(answered(answers)) / len(STAGES) - delay_s) * 1000


async def warm_up(request: Request) -> None:
    for number in range(WARM_UP):
        await request(-number - 1)


@asynccontextmanager
async def warm_sides(made: Mapping[str, MakeSide]) -> AsyncIterator[dict[str, Side]]:
    async with AsyncExitStack() as stack:
        sides = {name: await stack.enter_async_context(make()) for name, make in made.items()}
        for side in sides.values():
            await warm_up(side.request)
        yield sides


async def measure(count: int) -> Results:
    """Rounds of all sides in turns, so that they see the same disturbances."""
    results = Results()
    async with warm_sides(SIDES) as sides:
        for _ in range(ROUNDS):
            for concurrency in CONCURRENCIES:
                for name, side in sides.items():
                    results.closed[name][concurrency].append(await closed_loop(side, concurrency, count))
        rate = OPEN_LOAD * results.saturation("ours")
        for seed in range(ROUNDS):
            answers = await open_loop(sides["ours"].request, rate, count / rate, seed)
            results.open_ms.append(median_hop_ms(answers))
    async with warm_sides(DELAYED_SIDES) as sides:
        for _ in range(ROUNDS):
            for name, side in sides.items():
                results.delayed[name].append(await closed_loop(side, DELAYED_CONCURRENCY, count))
    return results


def show(results: Results) -> None:
    print(f"{'':46}{'in flight':>9}{'hop ms':>9}{'requests/s':>12}{'CPU-ms a hop':>14}")
    for side in SIDES:
        for concurrency in CONCURRENCIES:
            hop, rate = results.hop_ms(side, concurrency), results.requests_per_s(side, concurrency)
            cpu = results.cpu_ms(side, concurrency)
            print(f"{side:46}{concurrency:>9}{hop:>9.3f}{rate:>12.0f}{cpu:>14.3f}")
    print(f"open loop at {OPEN_LOAD:.0%} of our saturation: {statistics.median(results.open_ms):.3f} ms a hop")
    for side in DELAYED_SIDES:
        hop = results.delayed_hop_ms(side)
        print(
            f"{DELAYED_CONCURRENCY} in flight, {STAGE_DELAY_S * 1000:.0f} ms in each stage: {hop:.3f} ms a hop, {side}"
        )


def record(results: Results) -> None:
    for concurrency in (1, 64):
        value, peer = results.hop_ms("ours", concurrency), results.hop_ms(GRPC, concurrency)
        write(f"hop.median_ms.c{concurrency}", value, "ms", (GRPC, peer))
    value, peer = results.delayed_hop_ms("ours"), results.delayed_hop_ms(GRPC)
    write(f"hop.median_ms.c{DELAYED_CONCURRENCY}.stage_{STAGE_DELAY_S * 1000:.0f}ms", value, "ms", (GRPC, peer))
    write("hop.open30_median_ms", statistics.median(results.open_ms), "ms")
    ours_, grpc, rows = (results.saturation(side) for side in SIDES)
    write("hop.saturation_rps", ours_, "requests/s", (GRPC, grpc))
    write("hop.saturation_ratio_vs_grpc", ours_ / grpc, "times", (f"{GRPC}, in requests/s", grpc))
    write("hop.saturation_ratio_vs_queues", ours_ / rows, "times", (f"{QUEUES}, in requests/s", rows))
    most = max(CONCURRENCIES)
    write("hop.cpu_ms", results.cpu_ms("ours", most), "CPU-ms a hop", (GRPC, results.cpu_ms(GRPC, most)))
    write(
        "hop.cpu_ms.beside_queues", results.cpu_ms("ours", most), "CPU-ms a hop", (QUEUES, results.cpu_ms(QUEUES, most))
    )


def write(entry_id: str, value: float, unit: str, peer: tuple[str, float] | None = None) -> None:
    rounded = (peer[0], round(peer[1], 3)) if peer else None
    write_entry(entry_id, round(value, 3), unit, command=COMMAND, peer=rounded)


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000, help="of each round (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="show the figures without writing them into the ledger")
    arguments = parser.parse_args()
    results = uvloop.run(measure(arguments.requests))
    show(results)
    if not arguments.dry_run:
        record(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
