"""Schedules of what may happen to a frontend's sessions and workers: how they are drawn, played and judged.

`python -m tests.support.session_schedules SHAPE REPLICAS SLOTS JSON` plays one again; a failing test prints that.
"""

import asyncio
import json
import logging
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import TypeAlias

from hypothesis import strategies as st

from omni_contract.wire.errors import OmniError
from omni_runtime.orchestrator.session import Session
from omni_runtime.orchestrator.states import SessionState
from tests.support.orchestrator_world import Shape, World
from tests.support.stage_tables import chain, edge, stage, table
from tests.support.world_worker import Worker

Step: TypeAlias = tuple[str, int, int]

DIAMOND = table(
    [stage("a"), stage("b"), stage("c"), stage("d", "image")],
    [edge("a", "b"), edge("a", "c"), edge("b", "d"), edge("c", "d")],
)
FAN_IN = table([stage("a"), stage("b"), stage("c", "image")], [edge("a", "c"), edge("b", "c")])
OMNI = table(
    [stage("a", "text"), stage("b"), stage("c", "image")],
    [edge("a", "b"), edge("b", "c")],
)
SHAPES = {
    "chain": Shape(chain("a", "b", "c")),
    "diamond": Shape(DIAMOND),
    "fan-in": Shape(FAN_IN),
    "streaming chain": Shape(chain("a", "b", "c"), frozenset({"a->b", "b->c"})),
    "streaming diamond": Shape(DIAMOND, frozenset({"a->b", "a->c", "b->d", "c->d"})),
    "half-streaming fan-in": Shape(FAN_IN, frozenset({"a->c"})),
    "whole, then streaming": Shape(chain("a", "b", "c"), frozenset({"b->c"}), in_parts=True),
    "answers in parts": Shape(chain("a", "b"), frozenset({"a->b"}), in_parts=True, items=10),
    "two answers in parts": Shape(OMNI, frozenset({"a->b", "b->c"}), in_parts=True),
}

TO_WORKERS: Mapping[str, Callable[[World, Worker, int], object]] = {
    "advance": lambda world, worker, index: world.advance(worker, index),
    "answer": lambda world, worker, index: world.answer(worker, index),
    "fail": lambda world, worker, index: world.fail(worker, index, "stage_failed", retryable=True),
    "refuse": lambda world, worker, index: world.fail(worker, index, "invalid_request", retryable=False),
    "full": lambda world, worker, index: world.fail(worker, index, "overloaded", retryable=True),
    "die": lambda world, worker, _: world.die(worker),
    "vanish": lambda world, worker, _: world.vanish(worker),
    "break": lambda world, worker, _: world.break_stream(worker),
    "join": lambda world, worker, _: world.join(worker),
    "drain": lambda world, worker, _: world.drain(worker),
    "hurry": lambda world, _, steps: [world.advance_any() for _ in range(steps)],
}
TO_SESSIONS = ("abort", "expire", "read")
WHAT = ("arrive", "advance", "advance", "hurry", "hurry", *TO_WORKERS, *TO_SESSIONS)

schedules = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 30), st.integers(0, 30)), max_size=120)


async def act(world: World, step: Step) -> None:
    """`first` and `second` choose the worker and its work, or the session."""
    what, first, second = step
    if what == "arrive":
        world.arrive()
    elif what in TO_WORKERS:
        TO_WORKERS[what](world, world.workers[first % len(world.workers)], second)
    elif world.sessions:
        await _act_on_session(world, world.sessions[second % len(world.sessions)], what)
    world.deliver()


async def _act_on_session(world: World, session: Session, what: str) -> None:
    match what:
        case "abort":
            session.abort()
        case "expire" if not session.is_over:
            session.expire()
        case "read":
            await read(world, session)


async def read(world: World, session: Session) -> None:
    try:
        await world.read(session)
    except OmniError:
        assert session.is_over


async def settle(world: World) -> None:
    """All workers come back and do their work, and every caller reads."""
    for worker in world.workers:
        world.die(worker)
    for worker in world.workers:
        world.join(worker)
        worker.link.is_paused = False
    for pool in world.pools.values():
        pool.members_changed()
    world.deliver()
    is_moving = True
    while is_moving:
        while world.advance_any():
            pass
        for session in world.sessions:
            await read(world, session)
        world.deliver()
        is_moving = world.advance_any()


async def play(name: str, replicas: int, slots: int, schedule: list[Step]) -> World:
    world = World(SHAPES[name], replicas, slots)
    for step in schedule:
        await act(world, step)
    await settle(world)
    return world


def check_answers(world: World, session: Session) -> None:
    """Nothing but its own answers, in order, each part once; and all of them if it is done."""
    request_id = session.request.request_id
    right, answers = world.shape.answers(request_id), world.answers.get(request_id, {})
    assert answers.items() <= right.items()
    for name, parts in world.parts.get(request_id, {}).items():
        assert f"{right[name]},".startswith(",".join([*parts, ""]))
    assert session.state is not SessionState.DONE or answers == right


def check(world: World) -> None:
    assert [session.request.request_id for session in world.sessions if not session.is_over] == []
    assert sorted(map(id, world.ends)) == sorted(map(id, world.sessions)), "each ends exactly once"
    for session in world.sessions:
        check_answers(world, session)
        assert session.retries <= 1
    for worker in world.workers:
        assert worker.most_at_once <= worker.slots
        assert (worker.work, worker.held, worker.streams, worker.link.in_flight) == ([], {}, {}, 0)
    assert all(pool.waiting == 0 for pool in world.pools.values())


def replay_command(name: str, replicas: int, slots: int, schedule: list[Step]) -> str:
    arguments = shlex.join([name, str(replicas), str(slots), json.dumps(schedule)])
    return f"python -m tests.support.session_schedules {arguments}"


def main() -> None:
    name, replicas, slots, schedule = sys.argv[1:]
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    check(
        asyncio.run(
            play(name, int(replicas), int(slots), [(what, one, two) for what, one, two in json.loads(schedule)])
        )
    )


if __name__ == "__main__":
    main()
