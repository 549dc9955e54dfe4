"""A payload either has the entries that its schema names, or one sentence says what is wrong with it."""

import pytest

from omni_contract.api.v1alpha1 import DiffusionEngine
from omni_contract.presets import PRESETS
from omni_contract.presets.payloads import FLOATS, ArrayEntry, PayloadSchema, ValueEntry
from omni_contract.wire.payload import DTYPES, Array, Payload

SCHEMA = PayloadSchema(
    {
        "embeds": ArrayEntry(FLOATS, (1, "tokens", "width")),
        "mask": ArrayEntry(("bool",), (1, "tokens")),
        "more": ArrayEntry(FLOATS, ("rows", "width"), is_optional=True),
        "count": ValueEntry("integer", is_optional=True),
    }
)


def array(dtype: str, *shape: int) -> Array:
    size = DTYPES[dtype]
    for one in shape:
        size *= one
    return Array(dtype, shape, memoryview(bytes(size)))


GOOD: Payload = {"embeds": array("bfloat16", 1, 3, 8), "mask": array("bool", 1, 3)}


@pytest.mark.parametrize("added", [{}, {"more": array("float32", 0, 8)}, {"count": 3}])
def test_a_payload_that_fits_has_no_problem(added: Payload):
    assert SCHEMA.problem({**GOOD, **added}) is None


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ({"embeds": GOOD["embeds"]}, 'lacks "mask", which is bool[1, tokens]'),
        ({**GOOD, "maks": 1}, 'has "maks", which is none of embeds, mask, more, count'),
        (
            {**GOOD, "mask": array("bool", 1, 4)},
            'has bool[1, 4] as "mask", not bool[1, tokens] with tokens 3',
        ),
        (
            {**GOOD, "embeds": array("int64", 1, 3, 8)},
            'has int64[1, 3, 8] as "embeds", not float16|bfloat16|float32[1, tokens, width]',
        ),
        (
            {**GOOD, "embeds": array("float32", 2, 3, 8)},
            'has float32[2, 3, 8] as "embeds", not float16|bfloat16|float32[1, tokens, width]',
        ),
        ({**GOOD, "mask": [1, 1, 1]}, 'has a list as "mask", not bool[1, tokens] with tokens 3'),
        ({**GOOD, "count": True}, 'has a bool as "count", not integer'),
    ],
)
def test_a_payload_that_does_not_fit_is_told_by_its_entry(payload: Payload, problem: str):
    assert SCHEMA.problem(payload) == problem


def test_both_ends_of_an_edge_between_diffusion_stages_find_one_schema_however_the_phases_are_split():
    preset = PRESETS["qwen-image"]
    front, back = DiffusionEngine(phases=("encode", "denoise")), DiffusionEngine(phases=("decode",))
    made = preset.made_by("painter", front)
    assert made is not None and made is preset.taken_from("painter", back)
    assert preset.taken_from("painter", front) is None
