"""One administrative call to one worker, and what a person reads about its answer."""

from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.json_format import MessageToDict

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
    """`ask` makes the call with a ControlStub and returns what is printed behind the worker's name."""

    help: str
    ask: Callable[[Any, Namespace], Awaitable[str]]
    configure: Callable[[ArgumentParser], None] = _nothing


async def _sleep(stub: Any, options: Namespace) -> str:
    request = wire.SleepRequest(level=options.level, timeout_ms=int(1000 * options.timeout))
    reply: wire.SleepReply = await stub.Sleep(request, timeout=options.timeout + ANSWER_S)
    return f"asleep at level {options.level}, {reply.freed_bytes / 2**30:.3g} GiB given back"


async def _wake(stub: Any, options: Namespace) -> str:
    await stub.Wake(wire.WakeRequest(), timeout=WAKE_S)
    return "awake"


async def _start_profile(stub: Any, options: Namespace) -> str:
    request = wire.StartProfileRequest(max_steps=options.steps)
    reply: wire.StartProfileReply = await stub.StartProfile(request, timeout=ANSWER_S)
    return f"recording {options.steps} steps for {reply.trace}"


async def _stop_profile(stub: Any, options: Namespace) -> str:
    reply: wire.StopProfileReply = await stub.StopProfile(wire.StopProfileRequest(), timeout=ANSWER_S)
    return f"recorded {reply.steps} steps in {reply.trace}"


async def _reset_cache(stub: Any, options: Namespace) -> str:
    reply: wire.ResetCacheReply = await stub.ResetCache(wire.ResetCacheRequest(), timeout=ANSWER_S)
    return f"{reply.entries} entries dropped"


async def _drain(stub: Any, options: Namespace) -> str:
    request = wire.DrainRequest(timeout_ms=int(1000 * options.timeout))
    reply: wire.DrainReply = await stub.Drain(request, timeout=options.timeout + ANSWER_S)
    return f"draining, {reply.left_running} requests left"


async def _stats(stub: Any, options: Namespace) -> str:
    stats: wire.WorkerStats = await stub.Stats(wire.StatsRequest(), timeout=ANSWER_S)
    state = wire.WorkerState.Name(stats.state).removeprefix("WORKER_STATE_").lower()
    told = MessageToDict(stats, preserving_proto_field_name=True)
    return ", ".join([state, *(f"{name} {value}" for name, value in told.items() if name != "state")])


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
    "sleep": Call("give the device's memory back once nothing runs", _sleep, _level),
    "wake": Call("take the memory again", _wake),
    "start-profile": Call("record the next steps", _start_profile, _steps),
    "stop-profile": Call("write the profile and say where it is", _stop_profile),
    "reset-cache": Call("forget results kept for later requests", _reset_cache),
    "drain": Call("take nothing new, finish what runs", _drain, _timeout),
    "stats": Call("say how they are", _stats),
}
