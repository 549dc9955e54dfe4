"""The admin port's routes and refusals, without a socket."""

import json
from http import HTTPStatus

import pytest

from omni_runtime.worker.admin import ROUTES, STATUS, answer
from omni_runtime.worker.control import Control, Refusal
from omni_runtime.worker.states import Call, State
from tests.omni_runtime.worker.engines import GatedEngine
from tests.omni_runtime.worker.stages import MakeStage, fake


async def refused(control: Control, method: str, target: str) -> tuple[HTTPStatus, str, str]:
    status, body = await answer(control, method, target)
    assert body["error"].keys() == {"message", "type", "param", "code"}
    return status, body["error"]["code"], body["error"]["message"]


def test_every_call_has_a_route_and_every_refusal_a_status() -> None:
    assert len(ROUTES) == len(Call)
    assert STATUS.keys() == set(Refusal)


@pytest.mark.parametrize("path", ROUTES)
async def test_every_answer_is_json_whatever_the_state(make_stage: MakeStage, path: str) -> None:
    for state in State:
        stage = make_stage(fake(), state=state)
        method = ROUTES[path][0]
        status, body = await answer(Control(stage, "denoiser-0", None), method, path)
        assert (status is HTTPStatus.OK) != ("error" in body)
        json.dumps(body)


@pytest.mark.parametrize(
    ("method", "target", "status", "code", "words"),
    [
        ("POST", "/nap", 404, "not_found", "there is no /nap; there is /sleep, /wake"),
        ("GET", "/sleep", 405, "method_not_allowed", "/sleep takes POST, not GET"),
        ("POST", "/sleep?depth=1", 400, "invalid_request", '/sleep has no field "depth"; it takes level, timeout'),
        ("POST", "/wake?level=1", 400, "invalid_request", "it takes none"),
        ("POST", "/sleep?level=deep", 400, "invalid_request", "level is 'deep'; it must be a number from 0"),
        ("POST", "/sleep?level=7", 400, "invalid_request", "level is 7; it must be 1"),
        ("POST", "/sleep?timeout=nan", 400, "invalid_request", "timeout is 'nan'"),
        ("POST", "/drain?timeout=-1", 400, "invalid_request", "timeout is '-1'"),
        ("POST", "/profile/start?steps=0", 501, "not_supported", "--profile-dir"),
        ("POST", "/profile/stop", 409, "wrong_state", "records no profile"),
    ],
)
async def test_a_wrong_call_is_refused_with_the_way_out(
    make_stage: MakeStage, method: str, target: str, status: int, code: str, words: str
) -> None:
    said = await refused(Control(make_stage(fake()), "denoiser-0", None), method, target)
    assert said[:2] == (status, code)
    assert words in said[2]


async def test_an_engine_that_cannot_is_told_as_not_implemented(make_stage: MakeStage) -> None:
    said = await refused(Control(make_stage(GatedEngine()), "denoiser-0", None), "POST", "/cache/reset")
    assert said == (501, "not_supported", 'reset cache: the fake engine of stage "denoiser" cannot do that')
