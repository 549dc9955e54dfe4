"""From an images request to what the stages are asked."""

from typing import Any

import pytest

from omni_contract.api.v1alpha1 import FrontendLimits
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.frontend.images.parameters import (
    check_limits,
    in_request_words,
    request_payload,
    seeds_of,
    stage_parameters,
)
from omni_runtime.frontend.images.schema import MAX_SEED, ImageGenerationRequest


def body(**fields: Any) -> ImageGenerationRequest:
    return ImageGenerationRequest.model_validate({"prompt": "a fox", **fields})


def test_what_the_client_leaves_out_is_left_to_the_model() -> None:
    assert stage_parameters(body(), 7) == {"seed": 7}
    assert request_payload(body()) == {"prompt": "a fox", "negative_prompt": None}


def test_every_field_that_the_stages_know_is_passed_on() -> None:
    asked = body(size="64x32", steps=4, guidance_scale=0.0, negative_prompt="blurry")
    expected = {"width": 64, "height": 32, "steps": 4, "guidance_scale": 0.0, "seed": 1}
    assert stage_parameters(asked, 1) == expected
    assert request_payload(asked)["negative_prompt"] == "blurry"


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"num_inference_steps": 9}, "steps", 9),
        ({"true_cfg_scale": 4.0}, "guidance_scale", 4.0),
        ({"steps": 9, "num_inference_steps": 9}, "steps", 9),
        ({"guidance_scale": 1, "true_cfg_scale": 1.0}, "guidance_scale", 1.0),
    ],
)
def test_other_names_of_a_setting_mean_the_same(fields: dict[str, Any], name: str, value: float) -> None:
    assert stage_parameters(body(**fields), 0)[name] == value


def test_seeds_count_up_and_stay_within_64_bits() -> None:
    assert seeds_of(5, 3) == [5, 6, 7]
    assert seeds_of(MAX_SEED, 2) == [MAX_SEED, 0]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": "x" * 11}, "prompt"),
        ({"negative_prompt": "x" * 11}, "negative_prompt"),
        ({"size": "32x17"}, "size"),
        ({"steps": 6}, "steps"),
        ({"num_inference_steps": 6}, "num_inference_steps"),
    ],
)
def test_each_limit_of_the_model_is_held(fields: dict[str, Any], param: str) -> None:
    limits = FrontendLimits(max_prompt_characters=10, max_image_pixels=512, max_steps=5)
    check_limits(body(prompt="x" * 10, negative_prompt="x" * 10, size="32x16", steps=5), limits)
    with pytest.raises(OmniError, match="more than this model's limit") as caught:
        check_limits(body(**fields), limits)
    assert caught.value.param == param


@pytest.mark.parametrize(("param", "field"), [("width", "size"), ("height", "size"), ("steps", "steps"), (None, None)])
def test_a_refusal_by_a_stage_names_the_field_of_the_request(param: str | None, field: str | None) -> None:
    told = in_request_words(OmniError(ErrorCode.INVALID_REQUEST, "must be a multiple of 16", param))
    assert (told.code, told.message, told.param) == (ErrorCode.INVALID_REQUEST, "must be a multiple of 16", field)
