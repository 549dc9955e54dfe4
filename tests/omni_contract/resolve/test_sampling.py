from typing import Any

import pytest

from omni_contract.accelerators import Pool
from omni_contract.api.problems import dotted
from omni_contract.resolve import resolve, spec_problems
from tests.support.model_files import catalog, fake_spec, spec

CPU_ONLY = catalog(pools={"cpu": Pool(profile="cpu")}, allow_fake_engine=True)
FAMILY_DEFAULTS = {"width": 1024, "height": 1024, "steps": 50, "guidance_scale": 4.0}


def _told(changes: dict[str, Any]) -> dict[str, str]:
    return {dotted(problem.path): problem.message for problem in spec_problems(spec(changes))}


def test_the_diffusion_stages_of_a_model_share_one_map() -> None:
    model = resolve("painter", "team", spec({"stages[1].sampling": {"steps": 8}}), CPU_ONLY)

    assert [dict(stage.sampling) for stage in model.stages] == [FAMILY_DEFAULTS | {"steps": 8}] * 3


def test_a_fused_stage_gets_the_familys_defaults_too() -> None:
    model = resolve("painter", "team", spec({"stages": [{"name": "all-in-one", "diffusion": {}}]}), CPU_ONLY)

    assert model.stages[0].sampling == FAMILY_DEFAULTS


def test_stages_of_other_engines_keep_a_map_of_their_own() -> None:
    model = resolve("echo", "team", fake_spec({"stages[0].sampling": {"words": ["a", None]}}), CPU_ONLY)

    assert [dict(stage.sampling) for stage in model.stages] == [{"words": ["a", None]}, {}]


def test_the_same_value_on_two_stages_is_no_contradiction() -> None:
    assert _told({"stages[0].sampling": {"width": 512}, "stages[1].sampling": {"width": 512}}) == {}


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        (
            {"stages[1].sampling": {"step": 8}},
            "spec.stages[1].sampling.step",
            'family "qwen-image" has no parameter "step" (did you mean "steps"?); it reads guidance_scale, height, '
            "max_sequence_length, seed, steps, width",
        ),
        ({"stages[1].sampling": {"steps": "8"}}, "spec.stages[1].sampling.steps", "'8' is not an integer"),
        ({"stages[1].sampling": {"steps": True}}, "spec.stages[1].sampling.steps", "True is not an integer"),
        (
            {"stages[1].sampling": {"guidance_scale": None}},
            "spec.stages[1].sampling.guidance_scale",
            "None is not a number",
        ),
        (
            {"stages[0].sampling": {"width": 512}, "stages[2].sampling": {"width": 256}},
            "spec.stages[2].sampling.width",
            'stage "vae-decoder" sets width to 256 and stage "text-encoder" to 512; they make one picture together, '
            "so set it on one of them",
        ),
        (
            {"stages[1].sampling": {"steps": 500}},
            "spec.stages[1].sampling.steps",
            "500 steps by default are more than frontend.limits.maxSteps (200); lower one or raise the other",
        ),
        (
            {"stages[1].sampling": {"width": 4096}},
            "spec.stages[1].sampling.width",
            "4096x1024 by default is more than frontend.limits.maxImagePixels (2000000); make the picture smaller or "
            "raise the limit",
        ),
    ],
)
def test_defaults_that_no_request_could_use_are_refused(changes: dict[str, Any], path: str, message: str) -> None:
    limits = {"frontend.limits": {"maxImagePixels": 2_000_000}}

    assert _told(changes | limits) == {path: message}


def test_a_familys_own_defaults_above_a_limit_are_told_at_the_limit() -> None:
    assert _told({"frontend.limits": {"maxSteps": 10}}) == {
        "spec.frontend.limits": "50 steps by default are more than frontend.limits.maxSteps (10); lower one or raise "
        "the other"
    }
