"""Heads that were seen before: what is known of them gives the same as writing and reading them anew."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_contract.wire.codec import GAPS, LAYOUTS, CodecError, CodecLimits, allocate, decode, encode
from omni_contract.wire.layouts import MOST_HEAD_BYTES, MOST_KNOWN, Remembered, arrays_of
from omni_contract.wire.payload import Array, Payload
from tests.omni_contract.wire.test_codec import address_of, arrays, raw, texts, with_head

payloads_of_arrays = st.dictionaries(texts, arrays, min_size=1, max_size=4)


def pair(first: bytes = b"abc", second: bytes = b"defgh") -> Payload:
    return {name: Array("uint8", (len(data),), memoryview(data)) for name, data in (("a", first), ("b", second))}


@settings(max_examples=60, deadline=None)
@given(payloads_of_arrays)
def test_the_second_payload_of_its_kind_is_written_and_read_as_the_first(payload: Payload):
    first, second = encode(payload), encode(payload)
    assert second.to_bytes() == first.to_bytes() and second.size_bytes == first.size_bytes
    assert decode(first.to_bytes()) == decode(first.to_bytes()) == payload


def test_the_second_payload_of_its_kind_has_its_own_content():
    assert decode(encode(pair()).to_bytes()) == pair()
    other = pair(b"xyz", b"12345")
    (form, _), known = arrays_of(pair()) or ((), []), arrays_of(other)
    assert known is not None and known.form == form and GAPS.find(form) is not None
    assert decode(encode(other).to_bytes()) == other


def test_a_known_head_does_not_pass_for_a_payload_that_is_cut_or_longer():
    data = encode(pair()).to_bytes()
    decode(data)
    assert LAYOUTS.find((data[16:].split(b"\0")[0], len(data))) is not None
    for wrong in (data[:-1], data + b"x"):
        with pytest.raises(CodecError, match=r"ends past|its header describes"):
            decode(wrong)


def test_a_known_form_does_not_let_memory_with_gaps_through():
    encode({"a": Array("uint8", (4,), memoryview(bytes(4)))})
    with pytest.raises(CodecError, match="not contiguous"):
        encode({"a": Array("uint8", (4,), memoryview(bytes(8))[::2])})


def test_what_is_known_does_not_pass_by_tighter_limits_or_a_checksum():
    data = encode(pair()).to_bytes()
    decode(data)
    with pytest.raises(CodecError, match="header"):
        decode(data, CodecLimits(max_header_bytes=8))
    with pytest.raises(CodecError, match="more than 1 values"):
        encode(pair(), limits=CodecLimits(max_values=1))
    damaged = bytearray(encode(pair(), checksum=True).to_bytes())
    damaged[-1] ^= 1
    for _ in range(2):
        with pytest.raises(CodecError, match="checksum"):
            decode(damaged)


def test_buffers_in_another_order_than_their_names_are_read_right_again_and_again():
    slots = [{**raw(name, size_bytes=0), "kind": "array", "dtype": "uint8", "shape": [0]} for name in ("b", "a")]
    data = with_head({"root": {"a": None, "b": None}, "buffers": slots})
    for _ in range(2):
        assert decode(data) == pair(b"", b"")


def test_a_known_payload_gets_memory_of_its_own_if_that_is_asked_for():
    data = encode(pair()).to_bytes()
    for _ in range(2):
        array = decode(data, own_memory=True)["a"]
        assert isinstance(array, Array) and not array.data.readonly
        assert address_of(array.data) % 64 == 0
    block = allocate(len(data))
    block[:] = data
    assert decode(block) == pair()


def test_long_heads_and_anything_but_arrays_are_not_remembered():
    name = "n" * MOST_HEAD_BYTES
    array = Array("uint8", (1,), memoryview(b"x"))
    for payload in ({name: array}, {"a": array, "text": "secret"}, {"a": [array]}, {"a": array, "b": b"raw"}):
        data = encode(payload).to_bytes()
        assert decode(data) == payload
        assert LAYOUTS.find((data[16:].split(b"\0")[0], len(data))) is None
    assert GAPS.find(((name, "uint8", (1,)),)) is None


def test_what_is_remembered_stays_few():
    known: Remembered[int, int] = Remembered()
    for number in range(3 * MOST_KNOWN):
        known.add(number, number)
        assert known.find(number) == number
    assert sum(known.find(number) is not None for number in range(3 * MOST_KNOWN)) <= MOST_KNOWN
