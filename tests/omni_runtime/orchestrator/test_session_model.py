"""Random schedules of arrivals, chunks, failures, deaths and aborts: each request ends once and leaves nothing.

`make test-model-long` tries thousands of them.
"""

import asyncio
import itertools
import shlex
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from omni_runtime.orchestrator.states import SessionState
from tests.layout.source import CHECKOUT
from tests.support.orchestrator_world import Shape, World
from tests.support.session_schedules import SHAPES, Step, act, check, play, read, replay_command, schedules

pytestmark = pytest.mark.schedules


@pytest.mark.case("runtime:L17", "runtime:L18", "runtime:S22", "runtime:C8")
@pytest.mark.parametrize("name", SHAPES)
@settings(deadline=None, print_blob=False, suppress_health_check=[HealthCheck.too_slow])
@given(replicas=st.integers(1, 2), slots=st.integers(1, 3), schedule=schedules)
def test_whatever_happens_every_request_ends_once_and_leaves_nothing(
    name: str, replicas: int, slots: int, schedule: list[Step]
) -> None:
    note(f"replay: {replay_command(name, replicas, slots, schedule)}")
    check(asyncio.run(play(name, replicas, slots, schedule)))


def test_the_command_of_a_failing_schedule_plays_it_again() -> None:
    command = replay_command("streaming chain", 2, 1, [("arrive", 0, 0), ("hurry", 9, 9), ("die", 0, 0)])
    _, *arguments = shlex.split(command)
    subprocess.run([sys.executable, *arguments], cwd=CHECKOUT, check=True)


@pytest.mark.case("runtime:B1")
@pytest.mark.parametrize("name", SHAPES)
def test_without_faults_every_request_gets_the_answer_made_from_its_own_prompt(name: str) -> None:
    schedule: list[Step] = [("arrive", 0, 0)] * 8
    world = asyncio.run(play(name, 2, 2, schedule))
    check(world)
    assert {session.state for session in world.sessions} == {SessionState.DONE}


@pytest.mark.parametrize("name", SHAPES)
def test_one_death_at_any_moment_costs_no_request(name: str) -> None:
    """The whole schedule of one request, with a death of each worker that has a part in it after each of its steps."""
    first_replicas = range(0, 2 * len(SHAPES[name].table.stages), 2)
    for how, victim in itertools.product(("die", "vanish", "break"), first_replicas):
        for moment in itertools.count():
            world, steps_taken = asyncio.run(with_one_death(SHAPES[name], how, moment, victim))
            check(world)
            is_done = world.sessions[0].state is SessionState.DONE
            assert is_done or world.parts, f"worker {victim}: {how} after {moment} steps"
            assert is_done or world.shape.in_parts, "only parts that the client has may not be made again"
            if steps_taken <= moment:
                break


async def with_one_death(of: Shape, how: str, moment: int, victim: int) -> tuple[World, int]:
    """What became of one request, and after how many steps. A death that went unnoticed is noticed in the end."""
    world = World(of, replicas=2, slots=1)
    session = world.arrive()
    for taken in range(1_000):
        if taken == moment:
            await act(world, (how, victim, 0))
        if not world.advance_any():
            if session.is_over:
                break
            await read(world, session)
            if taken > moment:
                world.die(world.workers[victim])
        world.deliver()
    return world, taken
