"""The probes tell the truth in every state."""

from collections.abc import Callable
from typing import Any

import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from omni_runtime.worker.health import WorkerHealth
from omni_runtime.worker.stage import Stage
from omni_runtime.worker.states import State
from tests.omni_runtime.worker.engines import GatedEngine

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
NO_CONTEXT: Any = None


async def check(health: WorkerHealth, service: str) -> int:
    return int((await health.Check(HealthCheckRequest(service=service), NO_CONTEXT)).status)


@pytest.mark.parametrize(
    ("state", "startup", "ready"),
    [
        (State.LOADING, NOT_SERVING, NOT_SERVING),
        (State.READY, SERVING, SERVING),
        (State.SETTLING, SERVING, NOT_SERVING),
        (State.ASLEEP, SERVING, NOT_SERVING),
        (State.WAKING, SERVING, NOT_SERVING),
        (State.DRAINING, SERVING, NOT_SERVING),
    ],
)
async def test_each_state_has_its_answers(make_stage: Callable[..., Stage], state: State, startup: int, ready: int):
    health = WorkerHealth(make_stage(GatedEngine(), state=state), liveness_timeout_s=10)
    assert await check(health, "startup") == startup
    assert await check(health, "ready") == await check(health, "") == ready
    assert await check(health, "live") == SERVING


async def test_live_follows_the_engines_heartbeat_alone(make_stage: Callable[..., Stage]):
    engine = GatedEngine()
    health = WorkerHealth(make_stage(engine), liveness_timeout_s=10)
    engine.age_s = 11
    assert await check(health, "live") == NOT_SERVING
    assert await check(health, "ready") == SERVING
    engine.age_s = 9
    assert await check(health, "live") == SERVING


async def test_a_watch_answers_now_and_at_every_change_but_not_twice_the_same(make_stage: Callable[..., Stage]):
    stage = make_stage(GatedEngine(), state=State.LOADING)
    watch = WorkerHealth(stage, 10).Watch(HealthCheckRequest(service="ready"), NO_CONTEXT)
    assert (await anext(watch)).status == NOT_SERVING
    stage.become(State.READY)
    assert (await anext(watch)).status == SERVING
    stage.become(State.READY)
    stage.become(State.DRAINING)
    assert (await anext(watch)).status == NOT_SERVING
    await watch.aclose()


async def test_a_watch_of_an_unknown_service_says_so(make_stage: Callable[..., Stage]):
    watch = WorkerHealth(make_stage(GatedEngine()), 10).Watch(HealthCheckRequest(service="mood"), NO_CONTEXT)
    assert (await anext(watch)).status == HealthCheckResponse.SERVICE_UNKNOWN
    await watch.aclose()
