"""The payload codec: what goes in comes out, and damaged or hostile bytes are refused."""

import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_contract.wire.codec import (
    PRELUDE,
    CodecError,
    CodecLimits,
    allocate,
    decode,
    encode,
)
from omni_contract.wire.layouts import ALIGNMENT
from omni_contract.wire.payload import DTYPES, Array, Payload

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    texts,
    st.binary(max_size=200),
)
arrays = st.builds(
    lambda dtype, shape: Array(dtype, tuple(shape), memoryview(bytes(size_of(dtype, shape)))),
    st.sampled_from(sorted(DTYPES)),
    st.lists(st.integers(0, 5), max_size=4),
)
values = st.recursive(
    leaves | arrays, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
)
payloads = st.dictionaries(texts, values, max_size=5)


def size_of(dtype: str, shape: list[int]) -> int:
    count = 1
    for side in shape:
        count *= side
    return count * DTYPES[dtype]


@settings(max_examples=40, deadline=None)
@given(payloads, st.booleans())
def test_a_payload_comes_back_equal(payload: Payload, checksum: bool):
    encoded = encode(payload, checksum=checksum)
    data = encoded.to_bytes()
    assert len(data) == encoded.size_bytes
    assert decode(data) == payload


@settings(max_examples=40, deadline=None)
@given(payloads, st.integers(1, 300))
def test_slices_joined_are_the_payload(payload: Payload, slice_bytes: int):
    encoded = encode(payload)
    slices = list(encoded.slices(slice_bytes))
    assert all(0 < piece.nbytes <= slice_bytes for piece in slices)
    assert b"".join(slices) == encoded.to_bytes()


@settings(max_examples=40, deadline=None)
@given(payloads.map(lambda payload: encode(payload, checksum=True).to_bytes()), st.data())
def test_cut_bytes_are_refused(data: bytes, draw: st.DataObject):
    keep = draw.draw(st.integers(0, len(data) - 1))
    with pytest.raises(CodecError):
        decode(data[:keep])


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_either_a_payload_or_a_codec_error(noise: bytes):
    for data in (noise, PRELUDE.pack(b"OMNI", 1, len(noise)) + noise):
        try:
            decode(data)
        except CodecError:
            continue


def test_bytes_that_no_value_describes_are_refused():
    with pytest.raises(CodecError, match="its header describes"):
        decode(encode({"a": b"abc"}).to_bytes() + b"x")


def test_arrays_are_neither_copied_nor_moved_off_their_alignment():
    source = memoryview(bytearray(256))
    encoded = encode({"name": "x", "a": Array("float32", (4, 16), source)})
    source[0] = 7
    block = allocate(encoded.size_bytes)
    block[:] = encoded.to_bytes()
    array = decode(block)["a"]
    assert isinstance(array, Array) and array.data[0] == 7
    block[-256] = 9
    assert array.data[0] == 9
    assert address_of(array.data) % ALIGNMENT == 0


def address_of(view: memoryview) -> int:
    import ctypes

    return ctypes.addressof(ctypes.c_char.from_buffer(view))


def test_a_changed_buffer_is_noticed_if_a_checksum_was_asked_for():
    payload = {"a": b"abcdefgh"}
    for checksum in (True, False):
        data = bytearray(encode(payload, checksum=checksum).to_bytes())
        data[-1] ^= 1
        if checksum:
            with pytest.raises(CodecError, match="checksum"):
                decode(data)
        else:
            assert decode(data)["a"] == b"abcdefgi"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**63, "payload.x: 9223372036854775808 does not fit into 64 bits"),
        ({1: 2}, "payload.x: key 1 is not a string"),
        (object(), "payload.x: a object cannot travel"),
        ([object()], r"payload.x\[0\]: a object cannot travel"),
        (memoryview(bytes(8))[::2], "payload.x: the memory is not contiguous; make a contiguous copy first"),
        (Array("uint8", (1,) * 17, memoryview(b"a")), "payload.x: 17 dimensions, the limit is 16"),
    ],
)
def test_what_cannot_travel_is_named(value: object, message: str):
    with pytest.raises(CodecError, match=message):
        encode({"x": value})  # type: ignore[dict-item]


def test_a_view_with_gaps_is_refused_as_an_array():
    with pytest.raises(CodecError, match="not contiguous"):
        encode({"x": Array("uint8", (4,), memoryview(bytes(8))[::2])})


def test_the_deepest_tree_allowed_travels_and_one_level_more_is_refused():
    deepest = nested(CodecLimits().max_depth)
    assert decode(encode(deepest).to_bytes()) == deepest
    with pytest.raises(CodecError, match="nested deeper"):
        encode(nested(CodecLimits().max_depth + 1))


def nested(levels: int) -> dict[str, object]:
    tree: dict[str, object] = {}
    for _ in range(levels - 1):
        tree = {"x": tree}
    return tree


def test_a_reader_with_tighter_limits_refuses_what_a_writer_sent():
    data = encode({"list": [1, 2, 3], "deep": {"deeper": {}}}).to_bytes()
    with pytest.raises(CodecError, match="more than 3 values"):
        decode(data, CodecLimits(max_values=3))
    with pytest.raises(CodecError, match="nested deeper"):
        decode(data, CodecLimits(max_depth=2))
    with pytest.raises(CodecError, match="header"):
        decode(data, CodecLimits(max_header_bytes=8))


def test_too_many_values_are_refused_with_the_way_out():
    with pytest.raises(CodecError, match="send arrays instead of lists"):
        encode({"ids": list(range(100))}, limits=CodecLimits(max_values=50))


def with_head(head: str | dict[str, Any]) -> bytes:
    """A payload with this head; its buffers, if the head tells of any, are empty."""
    text = head if isinstance(head, str) else json.dumps(head)
    data = PRELUDE.pack(b"OMNI", 1, len(text)) + text.encode()
    has_buffers = isinstance(head, dict) and bool(head.get("buffers"))
    return data + bytes(-len(data) % ALIGNMENT) if has_buffers else data


def raw(*at: object, size_bytes: object = 0) -> dict[str, Any]:
    return {"kind": "raw", "at": list(at), "bytes": size_bytes}


def array(dtype: str = "uint8", shape: tuple[object, ...] = (0,)) -> dict[str, Any]:
    return {"kind": "array", "at": ["a"], "bytes": 0, "dtype": dtype, "shape": list(shape)}


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("{", "damaged"),
        ("[" * 100_000, "damaged or nested too deeply"),
        ("1" * 5000, "damaged"),
        ("{} {}", "damaged"),
        ("[]", "not a JSON object"),
        ({}, "must be a map"),
        ({"root": "x"}, "must be a map"),
        ({"root": {}, "buffers": {}}, "must be a list"),
        ({"root": {}, "buffers": [1]}, "kind that this version does not know"),
        ({"root": {"a": None}, "buffers": [{**raw("a"), "kind": "later"}]}, "kind that this version does not know"),
        ({"root": {"a": None}, "buffers": [raw("a", size_bytes=-1)]}, "kind that this version does not know"),
        ({"root": {"a": None}, "buffers": [raw("a", size_bytes=2**32)]}, "ends past"),
        ({"root": {"a": None}, "buffers": [raw()]}, "payload: a buffer belongs here"),
        ({"root": {"a": None}, "buffers": [raw("b")]}, "payload.b: a buffer belongs here"),
        ({"root": {"a": [None]}, "buffers": [raw("a", 1)]}, r"payload.a\[1\]: a buffer belongs here"),
        ({"root": {"a": "text"}, "buffers": [raw("a", 0)]}, r"payload.a\[0\]: a buffer belongs here"),
        ({"root": {"a": None}, "buffers": [raw("a"), raw("a")]}, "payload.a: a buffer belongs here"),
        ({"root": {"a": None}, "buffers": [raw(["a"])]}, "a buffer belongs here"),
        ({"root": {"a": None}, "buffers": [array("object")]}, 'dtype "object"'),
        ({"root": {"a": None}, "buffers": [array(shape=(-1, -1))]}, "kind that this version does not know"),
        ({"root": {"a": None}, "buffers": [array(shape=(1,) * 17)]}, "17 dimensions"),
        ({"root": {"a": None}, "buffers": [array(shape=(2**62,))]}, "needs 4611686018427387904 bytes, got 0"),
    ],
)
def test_a_hostile_head_is_refused(head: str | dict[str, Any], message: str):
    with pytest.raises(CodecError, match=message):
        decode(with_head(head))


def test_an_older_reader_survives_a_head_with_keys_of_tomorrow():
    head = {"root": {"a": None, "b": 1}, "buffers": [{**raw("a"), "later": 1}], "later": {"more": [1]}}
    assert decode(with_head(head)) == {"a": b"", "b": 1}


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), 1.0, 0.1, 5e-324])
def test_a_number_stays_exactly_what_it_is(number: float):
    found = decode(encode({"x": number}).to_bytes())["x"]
    assert (found, type(found)) == (number, float)


def test_arrays_get_memory_of_their_own_if_that_is_asked_for():
    data = encode({"a": Array("uint8", (3,), memoryview(b"abc"))}).to_bytes()
    array = decode(data, own_memory=True)["a"]
    assert isinstance(array, Array) and address_of(array.data) % ALIGNMENT == 0
    array.data[0] = ord("x")
    assert (bytes(array.data), decode(data)["a"]) == (b"xbc", Array("uint8", (3,), memoryview(b"abc")))


def test_another_format_is_refused_by_its_first_bytes():
    with pytest.raises(CodecError, match="not a payload of format 1"):
        decode(struct.pack("<4sB3xI4x", b"OMNI", 2, 0))
    with pytest.raises(CodecError, match="not a payload"):
        decode(b"\x80\x04pickled-things-here")
