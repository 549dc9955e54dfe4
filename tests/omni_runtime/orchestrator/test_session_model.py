"""Random schedules of arrivals, failures, deaths and aborts: each request ends once and leaves nothing behind."""

import asyncio
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omni_contract.wire.errors import OmniError
from omni_contract.wire.stage_table import StageTable
from omni_runtime.orchestrator.session import Session
from omni_runtime.orchestrator.states import SessionState
from tests.support.orchestrator_world import World
from tests.support.stage_tables import chain, edge, stage, table

Step: TypeAlias = tuple[str, int, int]

DIAMOND = table(
    [stage("a"), stage("b"), stage("c"), stage("d", "image")],
    [edge("a", "b"), edge("a", "c"), edge("b", "d"), edge("c", "d")],
)
FAN_IN = table([stage("a"), stage("b"), stage("c", "image")], [edge("a", "c"), edge("b", "c")])
TABLES = {"chain": chain("a", "b", "c"), "diamond": DIAMOND, "fan-in": FAN_IN}
TRAILS = {"chain": "((({})a)b)c", "diamond": "((({})a)b+(({})a)c)d", "fan-in": "(({})a+({})b)c"}

WHAT = (
    "arrive",
    "advance",
    "advance",
    "advance",
    "answer",
    "fail",
    "refuse",
    "full",
    "die",
    "join",
    "drain",
    "abort",
    "expire",
    "read",
)
FAILURES = {"fail": ("stage_failed", True), "refuse": ("invalid_request", False), "full": ("overloaded", True)}
steps = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 30), st.integers(0, 30)), max_size=120)


async def act(world: World, step: Step) -> None:
    what, first, second = step
    worker = world.workers[first % len(world.workers)]
    session = world.sessions[second % len(world.sessions)] if world.sessions else None
    match what:
        case "arrive":
            world.arrive()
        case "advance":
            world.advance(worker, second)
        case "answer":
            world.answer(worker, second)
        case "fail" | "refuse" | "full":
            code, retryable = FAILURES[what]
            world.fail(worker, second, code, retryable)
        case "die":
            world.die(worker)
        case "join":
            world.join(worker)
        case "drain":
            world.drain(worker)
        case "abort" if session:
            session.abort()
        case "expire" if session and not session.is_over:
            session.expire()
        case "read" if session:
            await read(world, session)
    world.deliver()


async def read(world: World, session: Session) -> None:
    try:
        await world.read(session)
    except OmniError:
        assert session.is_over


async def settle(world: World) -> None:
    """All workers come back and do their work, and every caller reads."""
    for worker in world.workers:
        world.die(worker)
        world.join(worker)
        worker.link.refused_until_s = 0.0
    for pool in world.pools.values():
        pool.members_changed()
    world.deliver()
    for _ in range(20 * (len(world.sessions) + 1)):
        for worker in world.workers:
            world.advance(worker, 0)
        for session in world.sessions:
            await read(world, session)
        world.deliver()
        if all(session.is_over for session in world.sessions):
            return


async def play(name: str, replicas: int, slots: int, schedule: list[Step]) -> World:
    world = World(TABLES[name], replicas, slots)
    for step in schedule:
        await act(world, step)
    await settle(world)
    return world


def check(world: World, name: str) -> None:
    assert [session.request.request_id for session in world.sessions if not session.is_over] == []
    assert sorted(map(id, world.ends)) == sorted(map(id, world.sessions)), "each ends exactly once"
    for session in world.sessions:
        answers = world.answers.get(session.request.request_id, [])
        assert answers in ([], [TRAILS[name].format(*[session.request.request_id] * 2)]), "its own answer, once"
        assert bool(answers) or session.state is not SessionState.DONE
        assert session.retries <= 1
    for worker in world.workers:
        assert worker.most_at_once <= worker.slots
        assert (worker.work, worker.held, worker.link.in_flight) == ([], {}, 0)
    assert all(pool.waiting == 0 for pool in world.pools.values())


@pytest.mark.case("runtime:L17", "runtime:L18", "runtime:S22", "runtime:C8")
@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(replicas=st.integers(1, 2), slots=st.integers(1, 3), schedule=steps)
def test_whatever_happens_every_request_ends_once_and_leaves_nothing(
    name: str, replicas: int, slots: int, schedule: list[Step]
) -> None:
    check(asyncio.run(play(name, replicas, slots, schedule)), name)


@pytest.mark.case("runtime:B1")
@pytest.mark.parametrize("name", TABLES)
def test_without_faults_every_request_gets_the_answer_made_from_its_own_prompt(name: str) -> None:
    schedule: list[Step] = [("arrive", 0, 0)] * 8
    world = asyncio.run(play(name, 2, 2, schedule))
    check(world, name)
    assert {session.state for session in world.sessions} == {SessionState.DONE}


@pytest.mark.parametrize("name", TABLES)
def test_one_death_at_any_moment_costs_no_request(name: str) -> None:
    """The whole schedule of one request, with a death of each worker after each of its steps."""
    workers = 2 * len(TABLES[name].stages)
    for moment in range(20):
        for victim in range(workers):
            states = asyncio.run(with_one_death(TABLES[name], moment, victim))
            assert states == [SessionState.DONE], f"worker {victim} died after {moment} steps"


async def with_one_death(of: StageTable, moment: int, victim: int) -> list[SessionState]:
    world = World(of, replicas=2, slots=1)
    session = world.arrive()
    for step in range(60):
        if step == moment:
            world.die(world.workers[victim])
        world.deliver()
        busy = [worker for worker in world.workers if worker.work]
        if busy:
            world.advance(busy[0], 0)
        else:
            await read(world, session)
    return [session.state for session in world.sessions]
