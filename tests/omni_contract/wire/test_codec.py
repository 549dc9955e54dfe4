"""The payload codec: what goes in comes out, and damaged or hostile bytes are refused."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_contract.wire.codec import (
    ALIGNMENT,
    PRELUDE,
    CodecError,
    CodecLimits,
    allocate,
    decode,
    encode,
)
from omni_contract.wire.payload import DTYPES, Array, Payload
from omni_contract.wire.stage_pb2 import PayloadHeader

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


def with_header(change: PayloadHeader) -> bytes:
    head = change.SerializeToString()
    return PRELUDE.pack(b"OMNI", 1, len(head)) + head


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ('root { map { items { key: "a" value { raw { buffer: 3 } } } } }', "points to buffer 3 of 0"),
        ('root { map { items { key: "a" value { array { dtype: "object" } } } } }', 'dtype "object"'),
        ('root { map { items { key: "a" value { } } } }', "kind that this version does not know"),
        ("root { text: 'x' }", "must be a map"),
        ("root { map { } } buffer_bytes: 4294967296", "ends past"),
    ],
)
def test_a_hostile_header_is_refused(header: str, message: str):
    from google.protobuf import text_format

    with pytest.raises(CodecError, match=message):
        decode(with_header(text_format.Parse(header, PayloadHeader())))


def test_an_array_that_claims_more_than_its_buffer_is_refused():
    data = bytearray(encode({"a": Array("float32", (2,), memoryview(bytes(8)))}).to_bytes())
    (_, _, head_bytes) = PRELUDE.unpack_from(data)
    header = PayloadHeader.FromString(bytes(data[PRELUDE.size : PRELUDE.size + head_bytes]))
    header.root.map.items["a"].array.shape[:] = [2**62]
    with pytest.raises(CodecError):
        decode(with_header(header))


def test_another_format_is_refused_by_its_first_bytes():
    with pytest.raises(CodecError, match="not a payload of format 1"):
        decode(struct.pack("<4sB3xI4x", b"OMNI", 2, 0))
    with pytest.raises(CodecError, match="not a payload"):
        decode(b"\x80\x04pickled-things-here")
