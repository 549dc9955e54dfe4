"""The control calls to a worker: what is sent, how long it may take, and what a person reads about the answer."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from omni_contract.wire import stage_pb2 as wire

DEFAULT_TIMEOUT_S = 60.0
DEFAULT_STEPS = 10
ANSWER_S = 60.0
"""A worker that says nothing for so long hangs."""
WAKE_S = 3600.0
"""Loading a large checkpoint from slow storage."""


def _nothing(parser: ArgumentParser) -> None:
    """The call has no options."""


@dataclass(frozen=True)
class Call:
    """`rpc` is its name in the service `Control`; `say` is what is printed behind the worker's name."""

    help: str
    rpc: str
    request: Callable[[Namespace], Message]
    say: Callable[[Any, Namespace], str]
    patience_s: Callable[[Namespace], float] = lambda options: ANSWER_S
    configure: Callable[[ArgumentParser], None] = _nothing

    async def ask(self, stub: Any, options: Namespace) -> Message:
        """With a ControlStub. Raises AioRpcError if the worker refuses or cannot be reached."""
        method = getattr(stub, self.rpc)
        reply: Message = await method(self.request(options), timeout=self.patience_s(options))
        return reply


def fields_of(reply: Message) -> dict[str, Any]:
    """The answer as JSON has it: every field, states by their name in small letters."""
    return {field.name: _plain(field, getattr(reply, field.name)) for field in reply.DESCRIPTOR.fields}


def _plain(field: Any, value: Any) -> Any:
    if field.enum_type is None:
        return value
    name: str = field.enum_type.values_by_number[value].name
    return name.removeprefix("WORKER_STATE_").lower()


def _milliseconds(options: Namespace) -> int:
    return int(1000 * options.timeout)


def _until_done(options: Namespace) -> float:
    timeout_s: float = options.timeout
    return timeout_s + ANSWER_S


def _slept(reply: wire.SleepReply, options: Namespace) -> str:
    return f"asleep at level {options.level}, {reply.freed_bytes / 2**30:.3g} GiB given back"


def _stats(reply: wire.WorkerStats, options: Namespace) -> str:
    told = fields_of(reply)
    state = told.pop("state")
    return ", ".join([state, *(f"{name} {value}" for name, value in told.items() if value)])


def _timeout(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        type=float,
        default=DEFAULT_TIMEOUT_S,
        help="seconds that running requests may take to finish (default: %(default)g)",
    )


def _level(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--level",
        type=int,
        choices=(1, 2),
        default=1,
        help="1 keeps the weights in host memory, 2 drops them (default: %(default)s)",
    )
    _timeout(parser)


def _steps(parser: ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS, help="steps to record (default: %(default)s)")


CALLS: Mapping[str, Call] = {
    "sleep": Call(
        help="give the device's memory back once nothing runs",
        rpc="Sleep",
        request=lambda options: wire.SleepRequest(level=options.level, timeout_ms=_milliseconds(options)),
        say=_slept,
        patience_s=_until_done,
        configure=_level,
    ),
    "wake": Call(
        help="take the memory again",
        rpc="Wake",
        request=lambda options: wire.WakeRequest(),
        say=lambda reply, options: "awake",
        patience_s=lambda options: WAKE_S,
    ),
    "start-profile": Call(
        help="record the next steps",
        rpc="StartProfile",
        request=lambda options: wire.StartProfileRequest(max_steps=options.steps),
        say=lambda reply, options: f"recording {options.steps} steps for {reply.trace}",
        configure=_steps,
    ),
    "stop-profile": Call(
        help="write the profile and say where it is",
        rpc="StopProfile",
        request=lambda options: wire.StopProfileRequest(),
        say=lambda reply, options: f"recorded {reply.steps} steps in {reply.trace}",
    ),
    "reset-cache": Call(
        help="forget results kept for later requests",
        rpc="ResetCache",
        request=lambda options: wire.ResetCacheRequest(),
        say=lambda reply, options: f"{reply.entries} entries dropped",
    ),
    "drain": Call(
        help="take nothing new, finish what runs",
        rpc="Drain",
        request=lambda options: wire.DrainRequest(timeout_ms=_milliseconds(options)),
        say=lambda reply, options: f"draining, {reply.left_running} requests left",
        patience_s=_until_done,
        configure=_timeout,
    ),
    "stats": Call(
        help="say how they are",
        rpc="Stats",
        request=lambda options: wire.StatsRequest(),
        say=_stats,
    ),
}
