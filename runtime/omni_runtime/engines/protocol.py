"""What a stage worker asks of an engine. One engine per process; the worker drives it from its event loop."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from omni_contract.wire.chunk import Chunk, chunk_of
from omni_contract.wire.payload import Payload, Value
from omni_contract.wire.stage_file import StageFile


@dataclass(frozen=True)
class StageRequest:
    """One request at one stage.

    `inputs` maps the edge name to what came over it; "" is the client's request. `outputs` lists the edges to produce
    for, "" being the final output. `streams` are the inputs that are still being made, each to be read once; an engine
    that reads several reads them at the same time, since their producer may wait for all of them.
    """

    request_id: str
    inputs: Mapping[str, Payload]
    parameters: Mapping[str, Value]
    outputs: tuple[str, ...]
    streams: Mapping[str, AsyncIterator[Chunk]] = field(default_factory=dict)

    @property
    def edges(self) -> tuple[str, ...]:
        """Of all inputs, by name."""
        return tuple(sorted((*self.inputs, *self.streams)))

    async def chunks(self, edge: str) -> AsyncIterator[Chunk]:
        """An input's items, as they come if the edge streams, else in one chunk."""
        if edge not in self.streams:
            yield chunk_of(self.inputs[edge])
            return
        async for chunk in self.streams[edge]:
            yield chunk


class StageProgress(NamedTuple):
    step: int
    total: int


class StageOutput(NamedTuple):
    """A payload for one edge; "" is the final output."""

    edge: str
    payload: Payload


class StageItem(NamedTuple):
    """A part of what the stage makes for one edge, for engines that make it bit by bit.

    The edge's settings decide whether items leave in chunks or all together at the end; parts of the final output leave
    at once. An edge gets either items or an output.
    """

    edge: str
    payload: Payload
    is_last: bool = False
    """Of this edge. An engine that knows saves a message; one that does not just ends."""


class StageNothing(NamedTuple):
    """An edge that gets items will get none, as of a speech that ended before it began; an edge is never forgotten."""

    edge: str


@dataclass(frozen=True)
class StageUsage:
    """Comes last, at most once.

    `batch_id` numbers the batches of an engine that serves several requests at once; 0 leaves it to the worker to count
    the requests. `postprocess_seconds` is what the engine did to a result that the model had made.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    steps: int = 0
    compute_seconds: float = 0.0
    postprocess_seconds: float = 0.0
    batch_id: int = 0
    batch_size: int = 1


StageEvent: TypeAlias = StageProgress | StageOutput | StageItem | StageNothing | StageUsage
ReportLoading: TypeAlias = Callable[[str], None]
"""Called with one line per loading step, for example "loading transformer 2/3"."""


class EngineDiedError(Exception):
    """The engine can serve nothing any more; the worker process ends, so that it is started anew."""


class UnusableEngineError(RuntimeError):
    """The stage file asks for what is not here, such as a device; raised as the engine is made."""


class Engine(Protocol):
    """A stage's model.

    `run` yields a request's events and returns when it is done. It raises OmniError for a request that it cannot serve,
    OmniError(OUT_OF_MEMORY) or MemoryError if memory ran out, EngineDiedError if it is broken for all requests; any
    other exception fails this request alone. It is asked for the next event only once the one before has been taken, so
    that a slow consumer slows the engine's request down.
    Closing the iterator (or cancelling the task that reads it) aborts the work within one step and frees what it held.
    """

    async def load(self, report: ReportLoading) -> None:
        """Load weights, warm up and run a one-step self-test; raises if any of it fails."""
        ...

    def run(self, request: StageRequest) -> AsyncIterator[StageEvent]: ...

    def heartbeat_age_s(self) -> float:
        """Seconds since the engine's loop last turned; 0 while idle. Liveness is judged by it.

        An engine whose requests all wait for a chunk to come, or for one to be taken, is idle.
        """
        ...

    async def close(self) -> None:
        """Release the model; running requests have ended before."""
        ...


SleepLevel: TypeAlias = Literal[1, 2]
"""1 keeps the weights in host memory, so that waking is quick; 2 drops them, so that waking loads them again."""


@runtime_checkable
class Sleeps(Protocol):
    """An engine that can give its memory back and take it again. No request runs meanwhile; the worker sees to that."""

    async def sleep(self, level: SleepLevel) -> int:
        """Give the device's memory back; the bytes of weights that left it. If it raises, the engine is as before."""
        ...

    async def wake(self, report: ReportLoading) -> None:
        """As `load`. If it raises, the engine is still asleep, and may be woken again."""
        ...


@dataclass(frozen=True)
class Profile:
    """A Chrome trace, complete once this is handed out, and the number of steps in it."""

    trace: Path
    steps: int


@runtime_checkable
class Profiles(Protocol):
    """An engine that records what its steps do."""

    @property
    def is_profiling(self) -> bool:
        """True while steps are recorded."""
        ...

    async def start_profile(self, trace: Path, max_steps: int) -> None:
        """Record the next steps, of whichever requests, and write the trace after the last of them."""
        ...

    async def stop_profile(self) -> Profile | None:
        """Write what was recorded so far; the profile, once, even if it has ended by itself. None if there is none.

        Raises OSError if the trace could not be written.
        """
        ...


@runtime_checkable
class HasWeights(Protocol):
    """An engine that loads weights."""

    @property
    def weights_bytes(self) -> int:
        """What they take on the device now: 0 until they are loaded, and while it sleeps."""
        ...


@runtime_checkable
class ResetsCache(Protocol):
    """An engine that keeps results for later requests."""

    async def reset_cache(self) -> int:
        """Forget them; how many there were. Requests that run go on."""
        ...


EngineFactory: TypeAlias = Callable[[StageFile], Engine]
"""What an engine module offers as `create`: makes the engine without loading anything."""
