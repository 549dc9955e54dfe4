from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_contract.accelerators import Pool
from omni_contract.api.problems import dotted
from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.resolve import ResolvedModel, ResolveError, VolumeSource, resolve
from tests.support.model_files import REMOVED, catalog, fake_spec, spec
from tests.support.spec_strategies import specs

CPU_ONLY = catalog(pools={"cpu": Pool(profile="cpu")}, allow_fake_engine=True)


def _resolve(changes: dict[str, Any] | None = None) -> ResolvedModel:
    return resolve("painter", "team", spec(changes), CPU_ONLY)


def _refused(of: OmniModelSpec, pools: Any = CPU_ONLY) -> dict[str, str]:
    with pytest.raises(ResolveError) as refused:
        resolve("painter", "team", of, pools)
    return {dotted(problem.path): problem.message for problem in refused.value.problems}


def test_a_family_fills_in_stages_edges_and_the_output() -> None:
    model = _resolve({"stages": REMOVED})

    assert [stage.name for stage in model.stages] == ["text-encoder", "denoiser", "vae-decoder"]
    assert [edge.name for edge in model.edges] == ["text-encoder->denoiser", "denoiser->vae-decoder"]
    assert [stage.output.modality if stage.output else None for stage in model.stages] == [None, None, "image"]


def test_the_source_is_a_claim_and_a_folder() -> None:
    assert _resolve().source == VolumeSource("models", "qwen-image")
    assert _resolve({"model.source": "pvc://models/a/b"}).source == VolumeSource("models", "a/b")
    assert _resolve({"model.source": "pvc://models"}).source == VolumeSource("models", "")


def test_a_model_is_served_under_its_own_name_unless_names_are_given() -> None:
    assert _resolve().served_names == ("painter",)
    assert _resolve({"model.servedNames": ["qwen", "q"]}).served_names == ("qwen", "q")


def test_memory_is_reserved_and_capped_and_cpu_only_reserved() -> None:
    stage = _resolve({"stages[1].resources": {"cpu": 4, "memory": "16Gi"}}).stage("denoiser")

    assert stage.requests == {"cpu": "4", "memory": "16Gi"}
    assert stage.limits == {"memory": "16Gi"}


def test_resources_that_are_left_out_are_not_made_up() -> None:
    stage = _resolve().stage("denoiser")

    assert (stage.requests, stage.limits) == ({}, {})


def test_an_engine_takes_at_least_one_whole_batch_at_a_time() -> None:
    assert _resolve().stage("denoiser").max_in_flight == 8
    assert _resolve({"stages[1].maxBatchSize": 32}).stage("denoiser").max_in_flight == 32
    assert _resolve({"stages[1].maxInFlight": 2}).stage("denoiser").max_in_flight == 2


def test_a_model_without_a_family_is_what_its_file_says() -> None:
    model = resolve("echo", "team", fake_spec(), CPU_ONLY)

    assert model.family is None
    assert [(stage.name, stage.engine.kind) for stage in model.stages] == [("first", "fake"), ("last", "fake")]
    assert model.stage("first").output is None


def test_the_fake_engine_is_refused_where_it_is_switched_off() -> None:
    told = _refused(fake_spec(), catalog(pools={"cpu": Pool(profile="cpu")}))

    assert told["spec.stages[0].fake"] == (
        'stage "first" uses the fake engine, which is switched off here; set allowFakeEngine in the chart\'s values '
        "or pass --allow-fake-engine to omni serve (tests only)"
    )


def test_rules_of_the_file_hold_for_resolve_too() -> None:
    assert "is a model on a hub" in _refused(spec({"model.source": "Qwen/Qwen-Image"}))["spec.model.source"]


def test_all_problems_of_all_stages_are_told_at_once() -> None:
    told = _refused(
        spec({"stages[0].accelerator": {"pool": "h200"}, "stages[1].accelerator": {"pool": "arc"}}), catalog()
    )

    assert set(told) == {
        "spec.stages[0].accelerator.pool",
        "spec.stages[1].accelerator.pool",
        "spec.stages[2].accelerator",
    }


def test_a_stage_that_the_preset_does_not_know_needs_an_engine() -> None:
    told = _refused(spec({"stages[0].name": "encoder"}))

    assert told["spec.stages[0]"] == (
        'stage "encoder" is not in the family\'s preset and sets no engine block; '
        "add one of: ar: {}, diffusion: {}, generation: {}, fake: {}"
    )


def test_an_edge_may_not_name_a_stage_that_neither_file_nor_preset_has() -> None:
    told = _refused(spec({"edges": [{"from": "text-encoder", "to": "denoizer"}]}))

    assert told["spec.edges[0].to"] == (
        'edge "text-encoder->denoizer" names stage "denoizer", which does not exist (did you mean "denoiser"?); '
        'the stages are: "text-encoder", "denoiser", "vae-decoder"'
    )


def test_a_certificate_is_the_model_s_unless_the_stage_has_its_own() -> None:
    tls = {"secretName": "tls", "stages": [{"name": "denoiser", "secretName": "own"}]}
    found = _resolve({"network": {"tls": tls}}).tls

    assert _resolve().tls is None
    assert found is not None
    assert [found.secret_of(name) for name in ("denoiser", "vae-decoder", "frontend")] == ["own", "tls", "tls"]


def test_a_certificate_for_a_stage_that_does_not_exist_is_refused() -> None:
    tls = {"secretName": "tls", "stages": [{"name": "denoizer", "secretName": "own"}]}

    assert _refused(spec({"network": {"tls": tls}}))["spec.network.tls.stages[0]"] == (
        'a certificate is for stage "denoizer", which does not exist (did you mean "denoiser"?); '
        'the stages are: "text-encoder", "denoiser", "vae-decoder"'
    )


def test_stages_that_wait_for_each_other_are_refused() -> None:
    told = _refused(fake_spec({"edges[1]": {"from": "last", "to": "first"}}))

    assert told["spec.edges"] == (
        'the stages "first", "last" wait for each other in a circle; a request passes each stage once, so remove one '
        "of the edges between them"
    )


def test_a_stage_whose_work_goes_nowhere_is_refused() -> None:
    told = _refused(fake_spec({"stages[1].output": REMOVED}))

    assert told["spec.stages[1]"] == (
        'stage "last" feeds no other stage and has no output, so nobody would get what it makes; '
        "add output: {modality: …} or an edge from it"
    )


def test_a_codec_that_computes_in_one_number_format_is_not_given_another() -> None:
    stages = [{"name": "code2wav", "generation": {"dtype": "bfloat16"}}]
    told = _refused(spec({"family": "qwen2.5-omni", "stages": stages}))

    assert told["spec.stages[0].generation.dtype"] == (
        'stage "code2wav" of this family computes in float32 alone; remove dtype'
    )
    stages[0]["generation"] = {"dtype": "float32"}
    assert resolve("talker", "team", spec({"family": "qwen2.5-omni", "stages": stages}), CPU_ONLY)


def test_a_transform_is_refused_where_there_is_none() -> None:
    in_family = _refused(spec({"edges": [{"from": "text-encoder", "to": "denoiser", "transform": "tokens"}]}))
    without = _refused(fake_spec({"edges[0].transform": "tokens"}))

    assert in_family["spec.edges[0].transform"] == (
        '"tokens" is no transform of family "qwen-image", which has none; remove transform'
    )
    assert without["spec.edges[0].transform"] == (
        '"tokens" is no transform of a model without a family, which has none; remove transform'
    )


def test_producers_come_before_consumers_whatever_the_order_in_the_file() -> None:
    stages = [
        {"name": "last", "fake": {}, "output": {"modality": "text"}},
        {"name": "middle", "fake": {}},
        {"name": "first", "fake": {}},
    ]
    edges = [{"from": "first", "to": "middle"}, {"from": "middle", "to": "last"}, {"from": "first", "to": "last"}]

    model = resolve("echo", "team", fake_spec({"stages": stages, "edges": edges}), CPU_ONLY)

    assert [stage.name for stage in model.stages] == ["first", "middle", "last"]


@pytest.mark.case("operator:A28")
@given(specs())
def test_whatever_the_schema_allows_resolves_or_is_refused_with_sentences(written: dict[str, Any]) -> None:
    parsed = OmniModelSpec.model_validate(written)
    try:
        model = resolve("any", "team", parsed, catalog(allow_fake_engine=True))
    except ResolveError as refused:
        assert all(problem.message and problem.path[0] == "spec" for problem in refused.problems)
    else:
        assert all(stage.output for stage in model.stages if stage.name not in {edge.source for edge in model.edges})


@pytest.mark.case("operator:D05")
@given(st.permutations(["text-encoder", "denoiser", "vae-decoder"]))
def test_the_order_of_stages_in_the_file_changes_nothing(names: list[str]) -> None:
    assert _resolve({"stages": [{"name": name} for name in names]}) == _resolve()


def test_resolving_twice_gives_equal_models() -> None:
    assert _resolve() == _resolve()
