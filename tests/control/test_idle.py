"""An operator whose models need nothing writes nothing. `python -m benchmarks.reconcile` looks for ten minutes."""

import time

import pytest

from tests.cluster.audit import Request
from tests.support.idle_writes import writes_of_ours
from tests.support.operator_models import a_spec, a_stage
from tests.support.operator_world import World
from tests.support.operators import Operator
from tests.support.waiting import eventually

pytestmark = pytest.mark.control

QUIET_S = 10
MODELS = tuple(f"quiet-{number}" for number in range(5))


@pytest.mark.case("operator:A02")
@pytest.mark.case("operator:Q05")
def test_settled_models_cost_no_write_and_an_edit_does(a_world: World, operator: Operator) -> None:
    def writes() -> list[Request]:
        return writes_of_ours(a_world.plane.audit_log, [a_world.namespace])

    for name in MODELS:
        a_world.create(name, a_spec(a_stage("denoiser")))
    a_world.wait_ready(*MODELS)
    before = writes()
    assert before
    time.sleep(QUIET_S)
    assert writes()[len(before) :] == []

    a_world.edit(MODELS[0], lambda model: model["spec"]["stages"][0].update(replicas=2))
    eventually("the edit is written", lambda: len(writes()) > len(before))
