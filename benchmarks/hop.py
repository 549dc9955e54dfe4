"""What one hop between frontend and stage costs: `python -m benchmarks.hop`.

Three fake stages without delay, in processes of their own, driven by the orchestrator in this one; HTTP is left out and
the loop is closed. A hop is a request's time from end to end divided by three. The peer runs in turns with ours.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import uvloop

from benchmarks.hop_peer import PeerChain
from benchmarks.ledger import write_entry
from omni_contract.api.v1alpha1 import FakeEngine, FrontendLimits, OutputSpec
from omni_contract.wire.names import edge_name
from omni_contract.wire.stage_file import EdgeEnd, StageFile
from omni_contract.wire.stage_table import StageTable, TableEdge, TableStage
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from omni_runtime.orchestrator.orchestrator import Orchestrator
from omni_runtime.orchestrator.request import SessionRequest
from omni_runtime.orchestrator.settings import OrchestratorSettings

STAGES = ("first", "second", "third")
COMMAND = "python -m benchmarks.hop"
PEER = "bare grpc.aio, one call per request and hop"
PAYLOAD_BYTES = 256
MAX_IN_FLIGHT = 1024
WARM_UP = 200
ROUNDS = 3
CONCURRENCIES = (1, 64, 256, 512)

Request = Callable[[int], Awaitable[None]]


@dataclass(frozen=True)
class Measured:
    """One round at one concurrency."""

    hop_ms: float
    requests_per_s: float


async def closed_loop(request: Request, concurrency: int, seconds: float) -> Measured:
    """So many clients, each sending its next request when the one before is answered."""
    taken_s: list[float] = []
    started_s = time.perf_counter()

    async def client(number: int) -> None:
        count = 0
        while (begun_s := time.perf_counter()) < started_s + seconds:
            await request(number * 1_000_000 + count)
            taken_s.append(time.perf_counter() - begun_s)
            count += 1

    async with asyncio.TaskGroup() as clients:
        for number in range(concurrency):
            clients.create_task(client(number))
    hop_ms = statistics.median(taken_s) / len(STAGES) * 1000
    return Measured(hop_ms, len(taken_s) / (time.perf_counter() - started_s))


def stage_file(index: int) -> StageFile:
    name = STAGES[index]
    return StageFile(
        model="hop",
        stage=name,
        revision="r1",
        family=None,
        model_path="/",
        engine=FakeEngine(),
        inputs=() if index == 0 else (edge_end(STAGES[index - 1], name, STAGES[index - 1]),),
        outputs=() if name == STAGES[-1] else (edge_end(name, STAGES[index + 1], STAGES[index + 1]),),
        output=OutputSpec(modality="text") if name == STAGES[-1] else None,
        max_in_flight=MAX_IN_FLIGHT,
        max_batch_size=1,
        batch_timeout_s=0,
        drain_timeout_s=5,
        startup_timeout_s=30,
    )


def edge_end(source: str, target: str, peer: str) -> EdgeEnd:
    return EdgeEnd(edge=edge_name(source, target), peer=peer, connector="auto", contract_hash="same")


def stage_table(addresses: list[str]) -> StageTable:
    files = [stage_file(index) for index in range(len(STAGES))]
    return StageTable(
        model="hop",
        namespace="default",
        revision="r1",
        family=None,
        served_names=("hop",),
        stages=tuple(
            TableStage(
                name=file.stage, engine="fake", output=file.output, max_in_flight=MAX_IN_FLIGHT, addresses=(address,)
            )
            for file, address in zip(files, addresses, strict=True)
        ),
        edges=tuple(
            TableEdge(source=source, target=target, connector="auto", contract_hash="same")
            for source, target in pairwise(STAGES)
        ),
        limits=FrontendLimits(),
        created=0,
    )


@contextmanager
def processes(commands: list[list[str]]) -> Iterator[None]:
    """Child processes for as long as the block runs; what they log is of no interest here."""
    running = [subprocess.Popen([sys.executable, "-m", *command], stderr=subprocess.DEVNULL) for command in commands]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


@asynccontextmanager
async def ours(folder: Path) -> AsyncIterator[Request]:
    addresses = [f"unix:{folder}/{name}.sock" for name in STAGES]
    commands = []
    for index, (name, address) in enumerate(zip(STAGES, addresses, strict=True)):
        path = folder / f"{name}.json"
        path.write_text(stage_file(index).model_dump_json(by_alias=True))
        commands.append(["omni_runtime.worker", "--stage-file", str(path), "--listen", address, "--die-with-parent"])
    table = stage_table(addresses)
    orchestrator = Orchestrator(table, LocalDiscovery(table), OrchestratorSettings(frontend_id="benchmark"))
    prompt = "x" * PAYLOAD_BYTES

    async def request(number: int) -> None:
        await orchestrator.run(SessionRequest(request_id=f"r-{number}", payload={"prompt": prompt}))

    with processes(commands):
        async with orchestrator.running():
            await until_ready(orchestrator)
            yield request


async def until_ready(orchestrator: Orchestrator) -> None:
    async with asyncio.timeout(30):
        while not orchestrator.is_ready:  # noqa: ASYNC110 - the orchestrator offers no event, and this is before the clock
            await asyncio.sleep(0.05)


@asynccontextmanager
async def peer(folder: Path) -> AsyncIterator[Request]:
    addresses = [f"unix:{folder}/peer-{name}.sock" for name in STAGES]
    with processes([["benchmarks.hop_peer", address] for address in addresses]):
        chain = PeerChain(addresses)
        await chain.ready()
        payload = b"x" * PAYLOAD_BYTES

        async def request(number: int) -> None:
            await chain.request(payload)

        yield request
        await chain.close()


async def measure(seconds: float) -> dict[str, dict[int, list[Measured]]]:
    """Rounds of ours and the peer in turns, so that both see the same disturbances."""
    results: dict[str, dict[int, list[Measured]]] = {side: {c: [] for c in CONCURRENCIES} for side in ("ours", "peer")}
    with tempfile.TemporaryDirectory() as name:
        async with ours(Path(name)) as our_request, peer(Path(name)) as peer_request:
            for request in (our_request, peer_request):
                for number in range(WARM_UP):
                    await request(-number - 1)
            for _ in range(ROUNDS):
                for concurrency in CONCURRENCIES:
                    for side, request in (("ours", our_request), ("peer", peer_request)):
                        results[side][concurrency].append(await closed_loop(request, concurrency, seconds))
    return results


def hop_ms(rounds: list[Measured]) -> float:
    return statistics.median(measured.hop_ms for measured in rounds)


def saturation(rounds: dict[int, list[Measured]]) -> float:
    """The best throughput at any concurrency."""
    return max(statistics.median(m.requests_per_s for m in measured) for measured in rounds.values())


def show(results: dict[str, dict[int, list[Measured]]]) -> None:
    print(f"{'in flight':>9} {'hop ms':>8} {'req/s':>8} {'peer ms':>8} {'peer/s':>8}")
    for concurrency in CONCURRENCIES:
        row = [results[side][concurrency] for side in ("ours", "peer")]
        figures = [figure for rounds in row for figure in (hop_ms(rounds), saturation({concurrency: rounds}))]
        print(f"{concurrency:>9} {figures[0]:>8.2f} {figures[1]:>8.0f} {figures[2]:>8.2f} {figures[3]:>8.0f}")


def record(results: dict[str, dict[int, list[Measured]]]) -> None:
    ours_, peer_ = results["ours"], results["peer"]
    for concurrency in (1, 64):
        value, peer_value = hop_ms(ours_[concurrency]), hop_ms(peer_[concurrency])
        write_entry(
            f"hop.median_ms.c{concurrency}", round(value, 3), "ms", command=COMMAND, peer=(PEER, round(peer_value, 3))
        )
    write_entry(
        "hop.saturation_rps",
        round(saturation(ours_)),
        "requests/s",
        command=COMMAND,
        peer=(PEER, round(saturation(peer_))),
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each round (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="show the figures without writing them into the ledger")
    arguments = parser.parse_args()
    results = uvloop.run(measure(arguments.seconds))
    show(results)
    if not arguments.dry_run:
        record(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
