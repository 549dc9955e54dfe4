"""A stage worker inside the test's process: it speaks the real protocol, and the test says what it answers and when."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import grpc

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.codec import decode, encode
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Array, Payload
from omni_contract.wire.stage_pb2_grpc import StageWorkerServicer, add_StageWorkerServicer_to_server
from omni_runtime.connectors.channels import SERVER_OPTIONS
from omni_runtime.transport.pipe import Pipe
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport
from omni_runtime.worker.pipes import PipeServer


@dataclass(eq=False)
class Job:
    """One attempt of one request at the worker."""

    request_id: str
    attempt: int
    start: wire.Start
    replies: asyncio.Queue[wire.WorkerMessage | None]
    parts: int = 0
    """Messages that its input took beside the start."""
    is_over: bool = False

    @property
    def parameters(self) -> Payload:
        return decode(self.start.parameters) if self.start.parameters else {}

    def send(self, **body: Any) -> None:
        self.replies.put_nowait(wire.WorkerMessage(request_id=self.request_id, attempt=self.attempt, **body))
        self.is_over |= bool({"finished", "failed"} & body.keys())

    def accept(self) -> None:
        self.send(accepted=True)

    def fail(self, code: str, message: str = "told to", retryable: bool = True, param: str = "") -> None:
        self.send(failed=wire.Failed(code=code, message=message, retryable=retryable, param=param))


Answer: TypeAlias = Callable[["FakeWorker", Job], Awaitable[None]]


@dataclass(eq=False)
class FakeWorker(StageWorkerServicer):
    """`gate` holds back every answer while it is closed; `jobs` holds every attempt that was started here."""

    stage: str
    address: str
    replica: str = ""
    max_in_flight: int = 4
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    answer: Answer | None = None
    final_by_handle: bool = False
    boot_id: str = "boot-1"
    transport: Transport = PLAIN
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    jobs: list[Job] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    parts: int = 0
    """Of the input of what starts next."""
    held: dict[str, bytes] = field(default_factory=dict)
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self.replica = self.replica or f"{self.stage}-0"
        self.gate.set()
        self._server: grpc.aio.Server | None = None
        self._pipes = PipeServer()
        self._serving = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._server = grpc.aio.server(interceptors=self.transport.interceptors, options=SERVER_OPTIONS)
        add_StageWorkerServicer_to_server(self, self._server)
        await self._serving.enter_async_context(self._pipes.serving(self.transport, f"{self.address}.pipe"))
        self.transport.bind(self._server, self.address)
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.die()

    async def die(self) -> None:
        """Breaks every stream at once, as a killed process does."""
        if self._server is not None:
            await self._server.stop(grace=None)
            await self._serving.aclose()
            self._server = None

    @property
    def running(self) -> int:
        return sum(not job.is_over for job in self.jobs)

    async def started(self, count: int) -> list[Job]:
        """Waits until so many attempts were started here."""
        async with asyncio.timeout(5), self.arrived:
            await self.arrived.wait_for(lambda: len(self.jobs) >= count)
        return self.jobs

    async def told(self, condition: Callable[[], bool]) -> None:
        """Waits until what the frontend has sent makes the condition true."""
        async with asyncio.timeout(5), self.arrived:
            await self.arrived.wait_for(condition)

    async def Describe(self, request: wire.DescribeRequest, context: grpc.aio.ServicerContext) -> wire.WorkerInfo:
        return wire.WorkerInfo(
            model="painter",
            stage=self.stage,
            revision="r1",
            boot_id=f"{self.replica}-{self.boot_id}",
            replica=self.replica,
            max_in_flight=self.max_in_flight,
            inputs=[wire.EdgeContract(edge=edge, contract_hash=value) for edge, value in self.inputs.items()],
            outputs=[wire.EdgeContract(edge=edge, contract_hash=value) for edge, value in self.outputs.items()],
            state=wire.WORKER_STATE_READY,
        )

    async def AttachPipe(
        self, request: wire.AttachPipeRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[wire.PipeOffer]:
        with self._pipes.offer() as offer:
            yield offer.reply
            pipe = await offer.taken()
        replies: asyncio.Queue[wire.WorkerMessage | None] = asyncio.Queue()
        reading = asyncio.create_task(self._read(pipe, replies))
        try:
            while (message := await replies.get()) is not None:
                await pipe.write(wire.WorkerBatch(messages=[message]).SerializeToString())
            await pipe.close(patience_s=5)
        finally:
            reading.cancel()
            pipe.break_off("the call has ended")

    async def Fetch(
        self, request: wire.FetchRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[wire.PayloadSlice]:
        if request.handle.key not in self.held:
            await context.abort(grpc.StatusCode.NOT_FOUND, "the payload is not held here")
        yield wire.PayloadSlice(data=self.held[request.handle.key], end_of_stream=True)

    async def Release(self, request: wire.ReleaseRequest, context: grpc.aio.ServicerContext) -> wire.ReleaseReply:
        for handle in request.handles:
            self.held.pop(handle.key, None)
        return wire.ReleaseReply()

    async def _read(self, pipe: Pipe, replies: asyncio.Queue[wire.WorkerMessage | None]) -> None:
        async with asyncio.TaskGroup() as answers:
            async for data in pipe:
                for message in wire.FrontendBatch.FromString(data).messages:
                    self._take(message, replies, answers)
                async with self.arrived:
                    self.arrived.notify_all()
        replies.put_nowait(None)

    def _take(
        self,
        message: wire.FrontendMessage,
        replies: asyncio.Queue[wire.WorkerMessage | None],
        answers: asyncio.TaskGroup,
    ) -> None:
        match message.WhichOneof("body"):
            case "start":
                job = Job(message.request_id, message.attempt, message.start, replies, self.parts)
                self.parts = 0
                self.jobs.append(job)
                answers.create_task(self._answer(job))
            case "part":
                self.parts += 1
            case "cancel":
                self.cancelled.append(message.request_id)
                for job in self.jobs:
                    if job.request_id == message.request_id and not job.is_over:
                        job.fail("cancelled", retryable=False)
            case "taken":
                self.taken.append(message.taken.parts)
            case "discard":
                self.discarded.append(message.request_id)

    async def _answer(self, job: Job) -> None:
        if self.answer is not None:
            await self.answer(self, job)
        else:
            await answer_all(self, job)


async def answer_all(worker: FakeWorker, job: Job) -> None:
    """Accepts, reports a step, waits at the gate, then gives every output that was asked for and finishes."""
    job.accept()
    job.send(progress=wire.Progress(step=1, total=2))
    await worker.gate.wait()
    if job.is_over:
        return
    for edge in job.start.outputs:
        announce(worker, job, edge, picture(job) if edge == FINAL else {"from": worker.replica})
    job.send(finished=wire.Finished(usage=wire.Usage(input_tokens=3, output_tokens=5, steps=1)))


def announce(worker: FakeWorker, job: Job, edge: str, payload: Payload) -> None:
    data = encode(payload).to_bytes()
    if edge == FINAL and not worker.final_by_handle:
        job.send(outputs=[wire.Output(edge=edge, inline=data)])
        return
    handle = wire.Handle(
        key=f"{job.request_id}/{job.attempt}/{edge}",
        edge=edge,
        request_id=job.request_id,
        connector="grpc",
        owner=worker.address,
        owner_stage=worker.stage,
        boot_id=f"{worker.replica}-{worker.boot_id}",
        size_bytes=len(data),
        kind=wire.HANDLE_KIND_OBJECT,
    )
    worker.held[handle.key] = data
    job.send(outputs=[wire.Output(edge=edge, handle=handle)])


def picture(job: Job) -> Payload:
    """An image of the asked size in one colour, which the seed decides."""
    width, height = int(str(job.parameters.get("width", 8))), int(str(job.parameters.get("height", 8)))
    seed = int(str(job.parameters.get("seed", 0)))
    colour = bytes((seed % 256, seed // 256 % 256, 7))
    return {"image": Array("uint8", (height, width, 3), memoryview(colour * (width * height)))}
