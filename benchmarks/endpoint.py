"""What the HTTP layer adds to a request: `python -m benchmarks.endpoint`.

A chain of fake stages that makes a picture of one color, driven twice in turns with 64 requests in flight: through
POST /v1/images/generations of a real frontend process, by an HTTP client that keeps its connections, and by an
orchestrator in this process. Both use the same workers; what is added is parsing, checks, PNG, base64 and HTTP.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import uvloop

from benchmarks.hop_sides import timed
from benchmarks.ledger import write_entry
from benchmarks.load import Answer, Request, answered
from omni_contract.wire.stage_table import StageTable
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings, SessionRequest
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from tests.support.fake_chain import MODEL, SIDE, fake_chain
from tests.support.model_processes import ModelProcesses, model_processes

COMMAND = "python -m benchmarks.endpoint"
IN_FLIGHT = 64
ROUNDS = 5
ROUND_TIMEOUT_S = 300
PROMPT = "a red fox in the snow"


@asynccontextmanager
async def over_http(url: str) -> AsyncIterator[Request]:
    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    async with aiohttp.ClientSession(connector=connector) as client:

        async def post(number: int) -> None:
            body = {"model": MODEL, "prompt": PROMPT, "seed": number, "size": f"{SIDE}x{SIDE}"}
            async with client.post(f"{url}/v1/images/generations", json=body) as answer:
                answer.raise_for_status()
                await answer.read()

        yield timed(post)


@asynccontextmanager
async def without_http(table: StageTable) -> AsyncIterator[Request]:
    settings = OrchestratorSettings(frontend_id="benchmark")
    async with Orchestrator(table, LocalDiscovery(table), settings).running() as orchestrator:
        await orchestrator.wait_ready()

        async def run(number: int) -> None:
            parameters = {"width": SIDE, "height": SIDE, "seed": number}
            payload = {"prompt": PROMPT, "negative_prompt": None}
            await orchestrator.run(SessionRequest(f"benchmark-{number}", payload, parameters))

        yield timed(run)


def stage_table(processes: ModelProcesses) -> StageTable:
    """The one that the frontend reads."""
    arguments = processes.plans["frontend-0"].arguments
    return StageTable.read(Path(arguments[arguments.index("--stage-table") + 1]).read_bytes())


async def median_ms(request: Request, count: int) -> float:
    answers: list[Answer] = []
    numbers = iter(range(count))

    async def client() -> None:
        for number in numbers:
            answers.append(await request(number))

    async with asyncio.timeout(ROUND_TIMEOUT_S):
        await asyncio.gather(*(client() for _ in range(IN_FLIGHT)))
    return statistics.median(answered(answers)) * 1000


async def measure(processes: ModelProcesses, count: int) -> tuple[float, float]:
    """Medians over HTTP and without it; the first round of each warms up."""
    await processes.start()
    async with over_http(processes.urls[0]) as http, without_http(stage_table(processes)) as direct:
        rounds = [(await median_ms(http, count), await median_ms(direct, count)) for _ in range(ROUNDS + 1)][1:]
    over, without = zip(*rounds, strict=True)
    return statistics.median(over), statistics.median(without)


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000, help="of each round (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="show the figures without writing them into the ledger")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, model_processes(fake_chain(), Path(folder)) as processes:
        http_ms, direct_ms = uvloop.run(measure(processes, arguments.requests))
    added_ms = http_ms - direct_ms
    print(f"{IN_FLIGHT} in flight: {http_ms:.1f} ms over HTTP, {direct_ms:.1f} ms without, {added_ms:.1f} ms added")
    if not arguments.dry_run:
        peer = ("the whole request without HTTP", round(direct_ms, 2))
        write_entry(f"http.added_ms.c{IN_FLIGHT}", round(added_ms, 2), "ms", command=COMMAND, peer=peer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
