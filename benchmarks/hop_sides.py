"""The chains that `benchmarks.hop` compares: ours and its peers, each with three stages in processes of their own."""

import asyncio
import multiprocessing
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing.queues import Queue
from typing import TypeAlias

from benchmarks.hop_peer import PeerChain
from benchmarks.load import Answer, Request
from benchmarks.stages import FakeStage, running_stages
from omni_contract.api.v1alpha1 import FakeEngine
from omni_runtime.orchestrator import SessionRequest

STAGES = ("first", "second", "third")
PAYLOAD_BYTES = 256
Item: TypeAlias = tuple[int, bytes]


@dataclass(frozen=True)
class Side:
    """`pids` are those of its stages, each of which takes `delay_s`; what drives them runs in this process."""

    request: Request
    pids: Sequence[int]
    delay_s: float = 0.0


MakeSide: TypeAlias = Callable[[], AbstractAsyncContextManager[Side]]


def timed(call: Callable[[int], Awaitable[object]]) -> Request:
    async def request(number: int) -> Answer:
        began_s = time.perf_counter()
        await call(number)
        return Answer(time.perf_counter() - began_s)

    return request


@asynccontextmanager
async def ours(delay_s: float = 0.0) -> AsyncIterator[Side]:
    """The orchestrator with fake stages."""
    prompt, engine = "x" * PAYLOAD_BYTES, FakeEngine(delay_seconds=delay_s)
    async with running_stages([FakeStage(name, engine) for name in STAGES]) as running:
        run = running.orchestrator.run
        request = timed(lambda number: run(SessionRequest(request_id=f"r-{number}", payload={"prompt": prompt})))
        yield Side(request, list(running.workers.values()), delay_s)


@asynccontextmanager
async def bare_grpc(delay_s: float = 0.0) -> AsyncIterator[Side]:
    """grpc.aio with one call for each request and hop."""
    payload = b"x" * PAYLOAD_BYTES
    with tempfile.TemporaryDirectory() as folder, ExitStack() as processes:
        addresses = [f"unix:{folder}/{name}.sock" for name in STAGES]
        pids = [
            processes.enter_context(_process("benchmarks.hop_peer", address, str(delay_s))) for address in addresses
        ]
        chain = PeerChain(addresses)
        await chain.ready()
        yield Side(timed(lambda number: chain.request(payload)), pids, delay_s)
        await chain.close()


@asynccontextmanager
async def queues() -> AsyncIterator[Side]:
    """Three processes in a row, with a multiprocessing queue before, between and after them."""
    context = multiprocessing.get_context("spawn")
    line: list[Queue[Item | None]] = [context.Queue() for _ in range(len(STAGES) + 1)]
    stages = [
        context.Process(target=_relay, args=(line[index], line[index + 1]), daemon=True) for index in range(len(STAGES))
    ]
    for stage in stages:
        stage.start()
    waiting: dict[int, asyncio.Future[bytes]] = {}
    reader = threading.Thread(target=_read, args=(line[-1], waiting, asyncio.get_running_loop()), name="answers")
    reader.start()

    async def call(number: int) -> None:
        answer = waiting[number] = asyncio.get_running_loop().create_future()
        line[0].put((number, b"x" * PAYLOAD_BYTES))
        await answer

    try:
        yield Side(timed(call), [stage.pid for stage in stages if stage.pid is not None])
    finally:
        line[0].put(None)
        await asyncio.to_thread(reader.join)
        for stage in stages:
            stage.join()


def _relay(source: "Queue[Item | None]", target: "Queue[Item | None]") -> None:
    """A stage's process: hands on what comes, and ends with what says so."""
    while (item := source.get()) is not None:
        target.put(item)
    target.put(None)


def _read(
    source: "Queue[Item | None]", waiting: dict[int, asyncio.Future[bytes]], loop: asyncio.AbstractEventLoop
) -> None:
    """In a thread, since a queue can only be read by waiting for it."""
    while (item := source.get()) is not None:
        number, payload = item
        loop.call_soon_threadsafe(waiting.pop(number).set_result, payload)


@contextmanager
def _process(module: str, *arguments: str) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-m", module, *arguments], stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
