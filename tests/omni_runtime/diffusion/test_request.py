from dataclasses import replace

import pytest

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.diffusion.request import ImageLimits, ImageRequest, parse_image_request
from omni_runtime.engines.protocol import StageRequest

LIMITS = ImageLimits(size_multiple=16, default_sequence_length=512, max_sequence_length=1024)
PARAMETERS = {"width": 64, "height": 32, "steps": 3, "guidance_scale": 4, "seed": 7}
WHOLE = ImageRequest(
    prompt="a fox",
    negative_prompt=None,
    width=64,
    height=32,
    steps=3,
    guidance_scale=4.0,
    seed=7,
    max_sequence_length=512,
)


def parse(client: dict[str, object] | None = None, **changes: object) -> ImageRequest:
    inputs = {"": {"prompt": "a fox"} if client is None else client}
    return parse_image_request(StageRequest("r", inputs, PARAMETERS | changes, ("",)), LIMITS)


def test_a_whole_request_is_understood():
    assert parse() == WHOLE


def test_an_empty_negative_prompt_is_not_an_absent_one():
    assert parse({"prompt": "a fox", "negative_prompt": ""}) == replace(WHOLE, negative_prompt="")


def test_a_stage_without_the_clients_request_has_no_prompt():
    request = StageRequest("r", {"text-encoder->denoiser": {}}, PARAMETERS, ("",))
    assert parse_image_request(request, LIMITS) == replace(WHOLE, prompt=None)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("width", 100, "multiple of 16, for example 96"),
        ("width", 8, "from 16 to"),
        ("height", 0, "from 16 to"),
        ("height", "64", "integer"),
        ("steps", 0, "from 1 to"),
        ("steps", True, "integer"),
        ("steps", 2.5, "integer"),
        ("guidance_scale", float("nan"), "at least 0"),
        ("guidance_scale", float("inf"), "at least 0"),
        ("guidance_scale", -1, "at least 0"),
        ("guidance_scale", "4", "number"),
        ("seed", -1, "from 0 to"),
        ("seed", 2**63, "from 0 to"),
        ("seed", None, "integer"),
        ("max_sequence_length", 1025, "from 1 to 1024"),
    ],
)
def test_a_bad_parameter_is_refused_by_name_value_and_rule(name, value, rule):
    with pytest.raises(OmniError) as refused:
        parse(**{name: value})
    assert (refused.value.code, refused.value.param) == (ErrorCode.INVALID_REQUEST, name)
    assert f'parameter "{name}" is {value!r}' in refused.value.message
    assert rule in refused.value.message


@pytest.mark.parametrize("name", ["prompt", "negative_prompt"])
def test_a_prompt_that_is_no_text_is_refused(name):
    with pytest.raises(OmniError) as refused:
        parse({"prompt": "a fox", name: 3})
    assert refused.value.param == name
