"""Sampling parameters: what is taken, and how a wrong one is refused."""

import pytest

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.engines.ar.sampling import RULES, sampling_of

GOOD = {
    "temperature": 0,
    "top_p": 1,
    "top_k": -1,
    "min_p": 0.5,
    "max_tokens": 1,
    "min_tokens": 0,
    "seed": -1,
    "presence_penalty": -2,
    "frequency_penalty": 2,
    "repetition_penalty": 1.05,
    "logprobs": 0,
    "stop": ["\n"],
    "stop_token_ids": [0, 5],
    "ignore_eos": True,
    "skip_special_tokens": False,
    "include_stop_str_in_output": True,
}
WRONG = (
    ("temperature", 2.1),
    ("temperature", float("nan")),
    ("temperature", True),
    ("top_p", 0),
    ("top_p", 1.1),
    ("top_k", -2),
    ("top_k", 1.5),
    ("min_p", -0.1),
    ("max_tokens", 0),
    ("max_tokens", "10"),
    ("min_tokens", -1),
    ("seed", 2**63),
    ("presence_penalty", 3),
    ("frequency_penalty", float("inf")),
    ("repetition_penalty", 0),
    ("logprobs", 21),
    ("logprobs", True),
    ("stop", "text"),
    ("stop", [""]),
    ("stop_token_ids", [-1]),
    ("ignore_eos", 1),
)


def test_every_parameter_is_taken_at_a_good_value_and_unknown_ones_are_left_alone():
    assert sampling_of({**GOOD, "width": 64}) == GOOD
    assert GOOD.keys() == RULES.keys()


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_value_is_refused_by_its_name(name, value):
    with pytest.raises(OmniError, match=f'parameter "{name}" is .*; it must be') as caught:
        sampling_of({name: value})
    assert (caught.value.code, caught.value.param) == (ErrorCode.INVALID_REQUEST, name)


def test_a_least_length_above_the_greatest_is_refused():
    with pytest.raises(OmniError, match="must not be above max_tokens, which is 3") as caught:
        sampling_of({"min_tokens": 4, "max_tokens": 3})
    assert caught.value.param == "min_tokens"


@pytest.mark.case("runtime:A34")
def test_a_refusal_does_not_echo_a_huge_value():
    with pytest.raises(OmniError) as caught:
        sampling_of({"stop": "x" * 1_000_000})
    assert len(caught.value.message) < 300
