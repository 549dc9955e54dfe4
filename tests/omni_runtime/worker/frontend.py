"""A frontend as a worker's session sees it, inside the test's process: what it sends, what it was told."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.codec import encode
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Payload

PATIENCE_S = 60.0
"""Only a hang takes so long, even on a loaded machine."""


class Frontend:
    """`send` fills `batches`, `write` takes what the worker answers, and `messages` are its parts.

    A frontend with a closed gate does not read.
    """

    def __init__(self) -> None:
        self.messages: list[wire.WorkerMessage] = []
        self.batches_received: list[wire.WorkerBatch] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._is_read = asyncio.Event()
        self._is_read.set()
        self._outgoing: asyncio.Queue[wire.FrontendBatch | None] = asyncio.Queue()
        self._told = asyncio.Condition()

    def send(self, *messages: wire.FrontendMessage) -> None:
        self._outgoing.put_nowait(wire.FrontendBatch(frontend_id="frontend-1", messages=messages))

    def leave(self) -> None:
        self._outgoing.put_nowait(None)

    async def batches(self) -> AsyncIterator[bytes]:
        while (batch := await self._outgoing.get()) is not None:
            yield batch.SerializeToString()

    async def hand_over(self, receive: Callable[[bytes], None]) -> None:
        async for batch in self.batches():
            await self._is_read.wait()
            receive(batch)

    def hold(self) -> None:
        self._is_read.clear()

    def go_on(self) -> None:
        self._is_read.set()

    async def write(self, batch: wire.WorkerBatch) -> None:
        await self.gate.wait()
        async with self._told:
            self.batches_received.append(batch)
            self.messages.extend(part for message in batch.messages for part in parts(message))
            self._told.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._told:
            await self._told.wait_for(condition)

    async def terminal(self, request_id: str, attempt: int = 1) -> wire.WorkerMessage:
        """Waits for the request's terminal message."""
        await self.until(lambda: bool(self.terminals(request_id, attempt)))
        return self.terminals(request_id, attempt)[0]

    @property
    def load(self) -> wire.Load:
        """The newest load that the worker has told; before the first, an empty one."""
        return self.batches_received[-1].load if self.batches_received else wire.Load()

    def terminals(self, request_id: str, attempt: int = 1) -> list[wire.WorkerMessage]:
        return [message for message in self.of(request_id, attempt) if message.WhichOneof("end")]

    def of(self, request_id: str, attempt: int = 1) -> list[wire.WorkerMessage]:
        return [m for m in self.messages if (m.request_id, m.attempt) == (request_id, attempt)]

    def kinds(self, request_id: str, attempt: int = 1) -> list[str]:
        return [field.name for message in self.of(request_id, attempt) for field, _ in message.ListFields()[2:]]


def parts(message: wire.WorkerMessage) -> Iterator[wire.WorkerMessage]:
    """As if each thing in the message had come in one of its own, so that no test depends on what leaves together."""

    def part(**body: Any) -> wire.WorkerMessage:
        return wire.WorkerMessage(request_id=message.request_id, attempt=message.attempt, **body)

    if message.accepted:
        yield part(accepted=True)
    if message.HasField("progress"):
        yield part(progress=message.progress)
    for output in message.outputs:
        yield part(outputs=[output])
    if end := message.WhichOneof("end"):
        yield part(**{end: getattr(message, end)})


def start(
    request_id: str,
    attempt: int = 1,
    payload: Payload | None = None,
    outputs: Sequence[str] = (FINAL,),
    remaining_s: float = PATIENCE_S,
    inputs: Sequence[wire.Input] | None = None,
    **parameters: Any,
) -> wire.FrontendMessage:
    own_inputs = inputs or [wire.Input(edge=FINAL, inline=encode(payload or {"prompt": "a fox"}).to_bytes())]
    body = wire.Start(
        remaining_ms=int(remaining_s * 1000),
        inputs=own_inputs,
        parameters=encode(parameters).to_bytes(),
        outputs=outputs,
    )
    return wire.FrontendMessage(request_id=request_id, attempt=attempt, start=body)


def cancel(request_id: str, attempt: int = 1) -> wire.FrontendMessage:
    return wire.FrontendMessage(request_id=request_id, attempt=attempt, cancel=wire.Cancel())


def discard(request_id: str) -> wire.FrontendMessage:
    return wire.FrontendMessage(request_id=request_id, discard=wire.Discard())


async def settled(condition: Callable[[], bool]) -> None:
    """Lets the event loop turn until the condition is true."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the event loop came to rest with the condition still false")


@asynccontextmanager
async def serving(
    serve: Callable[[Frontend, Any], Any],
) -> AsyncIterator[tuple[Frontend, "asyncio.Task[None]"]]:
    """Runs a session with a frontend of the test's; at the end the stream breaks."""
    frontend = Frontend()
    task = asyncio.create_task(serve(frontend, frontend.write))
    try:
        yield frontend, task
    finally:
        task.cancel()
        await asyncio.wait([task])
