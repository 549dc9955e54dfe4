"""A model that writes and speaks loses its voice, against a real API server: the status says what goes on."""

import pytest

from tests.support.kubelet import not_ready, set_status, waiting
from tests.support.operator_models import a_spec, a_stage
from tests.support.operator_world import Object, World
from tests.support.operators import Operator
from tests.support.waiting import eventually

pytestmark = pytest.mark.control

CRASHED = {"terminated": {"exitCode": 4, "reason": "Error", "message": "the engine died: no more steps"}}


@pytest.fixture
def toy(a_world: World, operator: Operator) -> World:
    thinker = a_stage("thinker", output={"modality": "text"})
    a_world.create("toy", a_spec(thinker, a_stage("vocoder", output={"modality": "audio"})))
    a_world.wait_ready("toy")
    return a_world


def servable(world: World) -> dict[str, bool]:
    return {one["modality"]: one["servable"] for one in world.model("toy")["status"]["outputs"]}


def degraded(world: World) -> Object:
    found: Object = next(one for one in world.model("toy")["status"]["conditions"] if one["type"] == "Degraded")
    return found


def test_text_without_its_sound_is_told_with_the_cause_and_is_over_when_the_sound_is_back(toy: World) -> None:
    assert (degraded(toy)["status"], degraded(toy)["reason"]) == ("False", "AllServed")
    assert servable(toy) == {"text": True, "audio": True}

    vocoder = next(pod for name, pod in toy.pods("toy").items() if "vocoder" in name)
    crashing = waiting("CrashLoopBackOff", lastState=CRASHED)
    set_status(toy, vocoder, conditions=not_ready(vocoder["status"]), containerStatuses=[crashing])
    eventually("audio is told to be away", lambda: servable(toy) == {"text": True, "audio": False})
    said = degraded(toy)
    assert (said["status"], said["reason"]) == ("True", "PartlyServed")
    assert said["message"].startswith("text can be served; no audio: vocoder: Pod toy-vocoder-")
    assert "the engine died: no more steps" in said["message"]
    assert toy.condition("toy", "Ready") == "False"
    assert toy.model("toy")["status"]["phase"] == "Degraded"

    set_status(toy, vocoder, **{key: vocoder["status"][key] for key in ("conditions", "containerStatuses")})
    toy.wait_ready("toy")
    assert servable(toy) == {"text": True, "audio": True}
    assert degraded(toy)["status"] == "False"
