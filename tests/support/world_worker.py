"""A worker without a network: it works on by one small step whenever a test says so, and keeps the protocol's rules.

A stage makes items, one after the other, from its inputs: item number i from each whole input and from item i of each
input that streams. A payload that is consumed is gone, a chunk that is read is freed, a cancel is answered once; what
is held can be counted, so that a test can ask whether anything was left behind.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.chunk import Chunk
from omni_contract.wire.codec import decode, encode
from omni_contract.wire.errors import TransferError
from omni_contract.wire.names import FINAL
from omni_runtime.orchestrator.link import Link

BUFFER_CHUNKS = 2
PARTS_AHEAD = 8


@dataclass(frozen=True)
class Manner:
    """How a stage of the world works: how many items it makes, and whether it answers the client part by part."""

    items: int = 1
    in_parts: bool = False
    streamed: frozenset[str] = frozenset()
    """Names of its edges that stream."""

    def item(self, stage: str, number: int, parts: list[str]) -> str:
        return f"({'+'.join(sorted(parts))}){stage}{number if self.items > 1 else ''}"


@dataclass(eq=False)
class Stream:
    chunks: deque[str] = field(default_factory=deque)
    is_ended: bool = False


@dataclass(eq=False)
class Work:
    """One attempt at a worker. `read` has what came over each stream so far, `wholes` the other inputs."""

    request_id: str
    attempt: int
    start: wire.Start
    is_accepted: bool = False
    wholes: list[str] = field(default_factory=list)
    unread: dict[str, wire.Handle] = field(default_factory=dict)
    read: dict[str, list[str]] = field(default_factory=dict)
    items: list[str] = field(default_factory=list)
    parts_ahead: int = 0

    def key(self, edge: str) -> str:
        return f"{self.request_id}/{self.attempt}/{edge}"


FindOwner = Callable[[wire.Handle], "Worker | None"]


@dataclass(eq=False)
class Worker:
    """`held` and `streams` map the keys of payloads to what they hold. One that `is_gone` is dead, and nobody knows."""

    link: Link
    slots: int
    manner: Manner
    find: FindOwner
    boot: str = ""
    is_gone: bool = False
    work: list[Work] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    most_at_once: int = 0

    @property
    def is_up(self) -> bool:
        return self.link.replica is not None

    def forget(self) -> None:
        self.work.clear()
        self.held.clear()
        self.streams.clear()

    def take(self, message: wire.FrontendMessage) -> None:
        if self.is_gone:
            return
        match message.WhichOneof("body"):
            case "start":
                self.work.append(Work(message.request_id, message.attempt, message.start))
                self.most_at_once = max(self.most_at_once, len(self.work))
            case "cancel":
                for work in self._of(message):
                    self.send(work, failed=wire.Failed(code="cancelled", retryable=False))
                self._drop_streams(f"{message.request_id}/{message.attempt}/")
            case "taken":
                for work in self._of(message):
                    work.parts_ahead -= message.taken.parts
            case "discard":
                for key in [key for key in self.held if key.startswith(f"{message.request_id}/")]:
                    del self.held[key]
                self._drop_streams(f"{message.request_id}/")

    def advance(self, work: Work) -> bool:
        """One small step; False if the attempt has to wait for another."""
        try:
            if not work.is_accepted:
                self._accept(work)
                return True
            return self._make(work) or self._read(work) or self._finish(work)
        except TransferError as exc:
            self.send(work, failed=wire.Failed(code=exc.code, message=exc.message, retryable=True))
            return True

    def answer(self, work: Work) -> None:
        """The whole of it at once, inline."""
        if work.is_accepted or self.manner.items > 1:
            return
        try:
            trail = self.manner.item(self.link.stage, 0, [self._consume(one) for one in work.start.inputs])
        except TransferError as exc:
            self.send(work, failed=wire.Failed(code=exc.code, message=exc.message, retryable=True))
            return
        data = encode({"prompt": trail, "trail": trail}).to_bytes()
        outputs = [wire.Output(edge=edge, inline=data) for edge in work.start.outputs]
        self.send(work, accepted=True, outputs=outputs, finished=wire.Finished())

    def send(self, work: Work, **body: object) -> None:
        """An end also ends what the attempt reads."""
        if {"failed", "finished"} & body.keys():
            self.work.remove(work)
            self.stop_reading(work)
        message = wire.WorkerMessage(request_id=work.request_id, attempt=work.attempt, **body)  # type: ignore[arg-type]
        self.link.received(wire.WorkerBatch(messages=[message]))

    def stop_reading(self, work: Work) -> None:
        for handle in work.unread.values():
            if (owner := self.find(handle)) is not None:
                owner.streams.pop(handle.key, None)
        work.unread.clear()

    def _accept(self, work: Work) -> None:
        work.is_accepted = True
        for one in work.start.inputs:
            if one.handle.kind == wire.HANDLE_KIND_STREAM:
                work.unread[one.edge], work.read[one.edge] = one.handle, []
        work.wholes = [self._consume(one) for one in work.start.inputs if one.edge not in work.unread]
        self.send(work, accepted=True)

    def _consume(self, one: wire.Input) -> str:
        if one.WhichOneof("source") == "inline":
            return str(decode(one.inline)["prompt"])
        owner = self.find(one.handle)
        if owner is None or one.handle.key not in owner.held:
            raise TransferError(one.edge, one.handle.request_id, "gone")
        return owner.held.pop(one.handle.key)

    def _make(self, work: Work) -> bool:
        """The next item, if its inputs are there and every reader has room for it."""
        number = len(work.items)
        if number == self.manner.items or any(len(read) <= number for read in work.read.values()):
            return False
        opened = [self.streams.get(work.key(edge)) for edge in self._streamed(work)]
        if any(stream is not None and len(stream.chunks) >= BUFFER_CHUNKS for stream in opened):
            return False
        if self._answers_in_parts(work) and work.parts_ahead >= PARTS_AHEAD:
            return False
        item = self.manner.item(self.link.stage, number, [*work.wholes, *(read[number] for read in work.read.values())])
        work.items.append(item)
        self._give(work, item)
        return True

    def _give(self, work: Work, item: str) -> None:
        is_first = len(work.items) == 1
        for edge in self._streamed(work):
            if is_first:
                self.streams[work.key(edge)] = Stream()
                self._announce(work, edge, wire.HANDLE_KIND_STREAM)
            # One that was dropped has no reader any more.
            if (stream := self.streams.get(work.key(edge))) is not None:
                stream.chunks.append(item)
        if self._answers_in_parts(work):
            work.parts_ahead += 1
            self._part(work, Chunk(({"trail": item},)))

    def _read(self, work: Work) -> bool:
        """A chunk of the stream that is furthest behind, so that no producer waits for another's reader."""
        for edge in sorted(work.unread, key=lambda edge: len(work.read[edge])):
            handle = work.unread[edge]
            owner = self.find(handle)
            stream = owner.streams.get(handle.key) if owner else None
            if owner is None or stream is None:
                raise TransferError(edge, work.request_id, "gone")
            if stream.chunks:
                work.read[edge].append(stream.chunks.popleft())
                return True
            if stream.is_ended:
                del work.unread[edge], owner.streams[handle.key]
                return True
        return False

    def _finish(self, work: Work) -> bool:
        if work.unread or len(work.items) < self.manner.items:
            return False
        for edge in work.start.outputs:
            if edge in self._streamed(work):
                if (stream := self.streams.get(work.key(edge))) is not None:
                    stream.is_ended = True
            elif edge == FINAL and self.manner.in_parts:
                self._part(work, Chunk((), is_last=True))
            else:
                self.held[work.key(edge)] = ",".join(work.items)
                self._announce(work, edge, wire.HANDLE_KIND_OBJECT)
        self.send(work, finished=wire.Finished())
        return True

    def _announce(self, work: Work, edge: str, kind: wire.HandleKind) -> None:
        handle = wire.Handle(
            key=work.key(edge),
            edge=edge,
            request_id=work.request_id,
            owner=self.link.address,
            boot_id=self.boot,
            kind=kind,
        )
        self.send(work, outputs=[wire.Output(edge=edge, handle=handle)])

    def _part(self, work: Work, chunk: Chunk) -> None:
        inline = encode(chunk.payload()).to_bytes()
        self.send(work, outputs=[wire.Output(edge=FINAL, inline=inline, more=not chunk.is_last)])

    def _streamed(self, work: Work) -> list[str]:
        return [edge for edge in work.start.outputs if edge in self.manner.streamed]

    def _answers_in_parts(self, work: Work) -> bool:
        return self.manner.in_parts and FINAL in work.start.outputs

    def _of(self, message: wire.FrontendMessage) -> list[Work]:
        return [one for one in self.work if (one.request_id, one.attempt) == (message.request_id, message.attempt)]

    def _drop_streams(self, prefix: str) -> None:
        for key in [key for key in self.streams if key.startswith(prefix)]:
            del self.streams[key]
