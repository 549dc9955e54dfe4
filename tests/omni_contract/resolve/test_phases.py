from itertools import pairwise
from typing import Any

import pytest

from omni_contract.api.problems import dotted
from omni_contract.resolve import spec_problems
from tests.support.model_files import spec


def _told(changes: dict[str, Any]) -> dict[str, str]:
    return {dotted(problem.path): problem.message for problem in spec_problems(spec(changes))}


def _stage(name: str, *phases: str) -> dict[str, Any]:
    return {"name": name, "diffusion": {"phases": list(phases)}}


@pytest.mark.parametrize(
    "stages",
    [
        [_stage("fused", "encode", "denoise", "decode")],
        [_stage("head", "encode", "denoise"), _stage("tail", "decode")],
        [_stage("head", "encode"), _stage("tail", "denoise", "decode")],
    ],
    ids=["fused", "two and one", "one and two"],
)
def test_the_phases_may_be_cut_anywhere(stages: list[dict[str, Any]]) -> None:
    names = [stage["name"] for stage in stages]
    edges = [{"from": first, "to": second} for first, second in pairwise(names)]

    assert _told({"stages": stages, "edges": edges}) == {}


def test_a_phase_that_no_stage_runs_is_told() -> None:
    told = _told(
        {"stages": [_stage("head", "encode"), _stage("tail", "decode")], "edges": [{"from": "head", "to": "tail"}]}
    )

    assert "no stage runs the phase denoise; add it to diffusion.phases of a stage" in told.values()


def test_a_phase_that_two_stages_run_is_told() -> None:
    told = _told({"stages[1].diffusion": {"phases": ["denoise", "decode"]}})

    assert told["spec.stages[2].diffusion.phases"] == (
        'stages "denoiser" and "vae-decoder" both run the phase decode; leave it to one of them'
    )


def test_an_edge_against_the_order_of_phases_is_told() -> None:
    stages = [_stage("head", "encode", "denoise"), _stage("tail", "decode")]

    told = _told({"stages": stages, "edges": [{"from": "tail", "to": "head"}]})

    assert told["spec.edges"] == (
        'edge "tail->head" leads from decode to encode; a picture goes through encode, denoise, decode in this order'
    )


def test_a_fake_stage_may_stand_for_a_phase() -> None:
    assert _told({"stages[1].fake": {}}) == {}
