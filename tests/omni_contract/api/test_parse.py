from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_contract.api.parse import parse
from omni_contract.api.problems import dotted
from tests.support.model_files import REMOVED, model_file
from tests.support.spec_strategies import damaged_specs


def _told(document: Any) -> dict[str, str]:
    _, problems = parse(document)
    return {dotted(problem.path): problem.message for problem in problems}


def test_faults_of_values_and_broken_rules_are_told_together() -> None:
    told = _told(
        model_file(
            {
                "spec.model.source": "Qwen/Qwen-Image",
                "spec.stages[0].replica": 2,
                "spec.stages[1].replicas": -1,
                "spec.frontend.service": {"nodePort": 30080},
            }
        )
    )

    assert list(told) == [
        "spec.stages[0].replica",
        "spec.stages[1].replicas",
        "spec.model.source",
        "spec.frontend.service.nodePort",
    ]


def test_a_rule_says_nothing_about_an_object_with_a_faulty_value() -> None:
    told = _told(model_file({"spec.stages[1].diffusion": 5, "spec.stages[1].fake": {}}))

    assert told == {"spec.stages[1].diffusion": "5 is not a map of keys and values"}


def test_a_faulty_item_does_not_shift_the_places_of_others() -> None:
    told = _told(
        model_file({"spec.stages[1].diffusion": {"phases": ["encode", 7]}, "spec.stages[2].batchTimeoutSeconds": 1})
    )

    assert told["spec.stages[1].diffusion.phases[1]"] == "7 is not one of: encode, denoise, decode"
    assert "spec.stages[2].batchTimeoutSeconds" in told


def test_an_item_of_the_wrong_kind_is_told_beside_faults_in_its_neighbours() -> None:
    told = _told(model_file({"spec.stages[0].replicas": "x", "spec.stages[1]": "denoiser"}))

    assert told == {
        "spec.stages[0].replicas": '"x" is not a whole number',
        "spec.stages[1]": '"denoiser" is not a map of keys and values',
    }


@pytest.mark.parametrize(
    "key",
    [
        *("attentionBackend", "cacheBackend", "cacheConfig", "cacheStrategy", "compile", "cpuOffload", "fusedOps"),
        *("layerwiseOffload", "loras", "numGpus", "parallelism", "quantization", "vaeUseSlicing", "vaeUseTiling"),
    ],
)
def test_a_setting_that_the_diffusion_engine_lacks_is_refused_by_name(key: str) -> None:
    told = _told(model_file({"spec.stages[1].diffusion": {key: 1}}))

    assert list(told) == [f"spec.stages[1].diffusion.{key}"]
    assert f'unknown key "{key}"' in told[f"spec.stages[1].diffusion.{key}"]


@pytest.mark.parametrize("document", [[], "text", 7, None, {}])
def test_what_is_no_object_at_all_is_told(document: Any) -> None:
    model, problems = parse(document)

    assert model is None
    assert problems


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"kind": "OmniModle"}, "kind", '"OmniModle" is not served; use "OmniModel"'),
        (
            {"apiVersion": "serving.omnimodel.dev/v1"},
            "apiVersion",
            '"serving.omnimodel.dev/v1" is not served; use "serving.omnimodel.dev/v1alpha1"',
        ),
        ({"metadata": REMOVED}, "", 'the key "metadata" is missing'),
        ({"spec.stages[0].replicas": 1.5}, "spec.stages[0].replicas", "1.5 is not a whole number"),
        ({"spec.stages[0].replicas": True}, "spec.stages[0].replicas", "true is not a whole number"),
        ({"spec.suspend": "yes"}, "spec.suspend", '"yes" is not true or false'),
        ({"spec.stages": {}}, "spec.stages", "a map is not a list"),
        (
            {"spec.model.servedNames": ["a b"]},
            "spec.model.servedNames[0]",
            '"a b" has a wrong form; it may not hold spaces',
        ),
        ({"spec.family": ""}, "spec.family", "the text is empty; it needs at least 1 character"),
        (
            {"spec.stages[0].diffusion": {"phases": []}},
            "spec.stages[0].diffusion.phases",
            "the list is empty; it needs at least 1 item",
        ),
        (
            {"spec.model.servedNames": [f"name{n}" for n in range(17)]},
            "spec.model.servedNames",
            "17 items are too many; at most 16 are allowed",
        ),
        (
            {"spec.stages[0].sampling": {f"key{n}": n for n in range(33)}},
            "spec.stages[0].sampling",
            "33 items are too many; at most 32 are allowed",
        ),
        (
            {"spec.stages[0].drain": {"timeout_seconds": 5}},
            "spec.stages[0].drain.timeout_seconds",
            'unknown key "timeout_seconds" (did you mean "timeoutSeconds"?)',
        ),
        ({"spec.stages[0].resources": {"cpu": 0.5}}, "spec.stages[0].resources.cpu", "0.5 is not text"),
        (
            {"spec.stages[0].resources": {"cpu": -2}},
            "spec.stages[0].resources.cpu",
            '"-2" has a wrong form; write a quantity like 2, "500m" or "16Gi"',
        ),
        (
            {"spec.stages[0].name": "x" * 200},
            "spec.stages[0].name",
            f'"{"x" * 57}…" has 200 characters; at most 15 are allowed',
        ),
    ],
)
def test_each_kind_of_fault_has_a_sentence(changes: dict[str, Any], path: str, message: str) -> None:
    assert _told(model_file(changes)) == {path: message}


def test_a_number_of_cpus_needs_no_quotes() -> None:
    model, _ = parse(model_file({"spec.stages[0].resources": {"cpu": 2}}))

    assert model is not None
    assert model.spec.stages[0].resources.cpu == "2"


def test_an_empty_key_is_no_key() -> None:
    with_empty, _ = parse(model_file({"spec.frontend": None, "spec.stages[0].drain": None}))
    without, _ = parse(model_file())

    assert with_empty == without


def test_null_in_the_users_own_maps_is_kept() -> None:
    model, _ = parse(model_file({"spec.stages[0].template": {"spec": {"nodeName": None}}}))

    assert model is not None
    assert model.spec.stages[0].template == {"spec": {"nodeName": None}}


def test_a_line_break_at_the_end_of_a_value_is_not_overlooked() -> None:
    assert list(_told(model_file({"spec.model.source": "pvc://models\n"}))) == ["spec.model.source"]
    assert list(_told(model_file({"spec.stages[0].name": "denoiser\n"}))) == ["spec.stages[0].name"]
    assert list(_told(model_file({"metadata.name": "painter\n"}))) == ["metadata.name"]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "spec", "x"]), inner),
)


@given(damaged_specs() | ANYTHING)
def test_no_file_is_answered_in_the_parsers_own_words(spec: Any) -> None:
    _, problems = parse(model_file() | {"spec": spec})

    assert not [
        problem.message for problem in problems if "nput should" in problem.message or "valid" in problem.message
    ]
