"""Items travel together as one payload, and come out as they went in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_contract.wire.chunk import CONTEXT, ITEMS, LAST, Chunk, chunk_of, is_chunk
from omni_contract.wire.codec import CodecError, decode, encode

ITEM = st.dictionaries(st.text(max_size=3), st.integers(-9, 9) | st.binary(max_size=5).map(memoryview), max_size=3)


@given(st.lists(ITEM, max_size=5), st.lists(ITEM, max_size=3), st.booleans())
def test_a_chunk_survives_being_sent(items: list[Any], context: list[Any], is_last: bool) -> None:
    chunk = Chunk(tuple(items), tuple(context), is_last)
    assert chunk_of(decode(encode(chunk.payload()).to_bytes())) == chunk


def test_a_payload_that_was_given_whole_is_a_single_item_and_the_last() -> None:
    whole = {"latents": b"1234"}
    assert not is_chunk(whole)
    assert chunk_of(whole) == Chunk((whole,), is_last=True)


@pytest.mark.parametrize(
    "damaged",
    [
        {ITEMS: "ab", CONTEXT: 0, LAST: True},
        {ITEMS: [1], CONTEXT: 0, LAST: True},
        {ITEMS: [{}], CONTEXT: 2, LAST: True},
        {ITEMS: [{}], CONTEXT: -1, LAST: True},
        {ITEMS: [{}], LAST: True},
        {ITEMS: [{}], CONTEXT: 0},
    ],
)
def test_a_damaged_chunk_is_refused(damaged: dict[str, Any]) -> None:
    with pytest.raises(CodecError, match="chunk"):
        chunk_of(damaged)
