"""Payloads as bytes: a protobuf header, then raw buffers, each aligned to 64 bytes. No pickle; every claim is checked.

Layout: prelude (16 bytes) | PayloadHeader | padding | buffer 0 | padding | buffer 1 ...
"""

import ctypes
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from omni_contract.wire.payload import DTYPES, Array, Payload, Value
from omni_contract.wire.stage_pb2 import PayloadHeader
from omni_contract.wire.stage_pb2 import Value as WireValue

ALIGNMENT = 64
MAGIC = b"OMNI"
FORMAT = 1
PRELUDE = struct.Struct("<4sB3xI4x")


class CodecError(ValueError):
    """A payload that cannot travel, or bytes that are not a payload."""


@dataclass(frozen=True)
class CodecLimits:
    """What a payload may hold; protobuf's own nesting limit allows no deeper trees."""

    max_depth: int = 24
    max_values: int = 100_000
    max_rank: int = 16
    max_header_bytes: int = 16 * 2**20


LIMITS = CodecLimits()


@dataclass(frozen=True)
class EncodedPayload:
    """The bytes of a payload as parts, to be sent one after the other; arrays are views of their own memory."""

    parts: tuple[memoryview, ...]
    size_bytes: int

    def to_bytes(self) -> bytes:
        return b"".join(self.parts)

    def slices(self, slice_bytes: int) -> Iterator[memoryview]:
        """The bytes in order, in views of at most `slice_bytes`; no view spans two parts."""
        for part in self.parts:
            for start in range(0, part.nbytes, slice_bytes):
                yield part[start : start + slice_bytes]


def encode(payload: Payload, checksum: bool = False, limits: CodecLimits = LIMITS) -> EncodedPayload:
    """Encodes without copying arrays; the caller leaves them unchanged while the result is in use."""
    writer = _Writer(limits)
    header = PayloadHeader()
    writer.write_map(header.root, payload, "payload", 1)
    header.buffer_bytes.extend(buffer.nbytes for buffer in writer.buffers)
    if checksum:
        header.checksum = _checksum(writer.buffers)
    head = header.SerializeToString(deterministic=True)
    if len(head) > limits.max_header_bytes:
        raise CodecError(f"the header takes {len(head):,} bytes, above the limit of {limits.max_header_bytes:,}")
    return _assemble(PRELUDE.pack(MAGIC, FORMAT, len(head)) + head, writer.buffers)


def decode(data: bytes | bytearray | memoryview, limits: CodecLimits = LIMITS) -> dict[str, Value]:
    """The payload in these bytes. Arrays and raw values are views of `data`; nothing is copied."""
    view = memoryview(data).cast("B")
    header, end = _read_header(view, limits)
    buffers = _split(view, end, header.buffer_bytes)
    if header.checksum and header.checksum != _checksum(buffers):
        raise CodecError("the checksum of the buffers does not match")
    if header.root.WhichOneof("kind") != "map":
        raise CodecError("the root of a payload must be a map")
    reader = _Reader(buffers, limits)
    return reader.read_map(header.root, 1)


def allocate(size_bytes: int) -> memoryview:
    """Writable memory that starts on an aligned address, so that arrays decoded from it are aligned as well."""
    block = bytearray(size_bytes + ALIGNMENT)
    offset = -ctypes.addressof(ctypes.c_char.from_buffer(block)) % ALIGNMENT
    return memoryview(block)[offset : offset + size_bytes]


def _padding(position: int) -> bytes:
    return bytes(-position % ALIGNMENT)


def _assemble(head: bytes, buffers: Sequence[memoryview]) -> EncodedPayload:
    parts: list[memoryview] = []
    position = 0
    pending = head
    for buffer in buffers:
        pending += _padding(position + len(pending))
        parts += [memoryview(pending), buffer]
        position += len(pending) + buffer.nbytes
        pending = b""
    if pending:
        parts.append(memoryview(pending))
        position += len(pending)
    return EncodedPayload(tuple(part for part in parts if part.nbytes), position)


def _checksum(buffers: Sequence[memoryview]) -> int:
    value = 0
    for buffer in buffers:
        value = zlib.crc32(buffer, value)
    return value


def _read_header(view: memoryview, limits: CodecLimits) -> tuple[PayloadHeader, int]:
    if view.nbytes < PRELUDE.size:
        raise CodecError(f"{view.nbytes} bytes are too few for a payload")
    magic, version, head_bytes = PRELUDE.unpack_from(view)
    if magic != MAGIC or version != FORMAT:
        raise CodecError(f"not a payload of format {FORMAT}: it starts with {bytes(view[:5])!r}")
    end = PRELUDE.size + head_bytes
    if head_bytes > limits.max_header_bytes or end > view.nbytes:
        raise CodecError(f"the header claims {head_bytes:,} bytes, which is above the limit or past the end")
    try:
        return PayloadHeader.FromString(bytes(view[PRELUDE.size : end])), end
    except DecodeError as error:
        raise CodecError("the header is damaged or nested too deeply") from error


def _split(view: memoryview, position: int, sizes: Sequence[int]) -> list[memoryview]:
    buffers = []
    for size in sizes:
        position += -position % ALIGNMENT
        if position + size > view.nbytes:
            raise CodecError(f"a buffer of {size:,} bytes ends past the payload's {view.nbytes:,} bytes")
        buffers.append(view[position : position + size])
        position += size
    if position != view.nbytes:
        raise CodecError(f"the payload has {view.nbytes:,} bytes, its header describes {position:,}")
    return buffers


class _Writer:
    """Turns a tree of values into wire values and collects the buffers they point to."""

    def __init__(self, limits: CodecLimits) -> None:
        self.buffers: list[memoryview] = []
        self._limits = limits
        self._values = 0

    def write_map(self, target: WireValue, items: Mapping[str, Value], path: str, depth: int) -> None:
        if depth > self._limits.max_depth:
            raise CodecError(f"{path}: nested deeper than {self._limits.max_depth} levels")
        target.map.SetInParent()
        wire = target.map.items
        for key, value in items.items():
            if not isinstance(key, str):
                raise CodecError(f"{path}: key {key!r} is not a string")
            self._write(wire[key], value, f"{path}.{key}", depth)

    def _write_list(self, target: WireValue, items: Sequence[Value], path: str, depth: int) -> None:
        if depth > self._limits.max_depth:
            raise CodecError(f"{path}: nested deeper than {self._limits.max_depth} levels")
        target.list.SetInParent()
        for index, value in enumerate(items):
            self._write(target.list.items.add(), value, f"{path}[{index}]", depth)

    def _write(self, target: WireValue, value: Value, path: str, depth: int) -> None:
        self._values += 1
        if self._values > self._limits.max_values:
            raise CodecError(f"{path}: more than {self._limits.max_values:,} values; send arrays instead of lists")
        match value:
            case None:
                target.null = True
            case bool():
                target.boolean = value
            case int():
                target.integer = _checked_integer(value, path)
            case float():
                target.number = value
            case str():
                target.text = value
            case Array():
                self._write_array(target, value, path)
            case bytes() | bytearray() | memoryview():
                target.raw.buffer = self._add(memoryview(value), path)
            case Mapping():
                self.write_map(target, value, path, depth + 1)
            case Sequence():
                self._write_list(target, value, path, depth + 1)
            case _:
                raise CodecError(f"{path}: a {type(value).__name__} cannot travel; convert it to Array, list or number")

    def _write_array(self, target: WireValue, array: Array, path: str) -> None:
        if len(array.shape) > self._limits.max_rank:
            raise CodecError(f"{path}: {len(array.shape)} dimensions, the limit is {self._limits.max_rank}")
        target.array.buffer = self._add(array.data, path)
        target.array.dtype = array.dtype
        target.array.shape.extend(array.shape)

    def _add(self, data: memoryview, path: str) -> int:
        if not data.c_contiguous:
            raise CodecError(f"{path}: the memory is not contiguous; make a contiguous copy first")
        # An empty view of more than one dimension cannot be cast.
        self.buffers.append(data.cast("B") if data.nbytes else memoryview(b""))
        return len(self.buffers) - 1


def _checked_integer(value: int, path: str) -> int:
    if not -(2**63) <= value < 2**63:
        raise CodecError(f"{path}: {value} does not fit into 64 bits")
    return value


class _Reader:
    """Turns wire values back, checking every reference into the buffers."""

    def __init__(self, buffers: Sequence[memoryview], limits: CodecLimits) -> None:
        self._buffers = buffers
        self._limits = limits
        self._values = 0

    def read_map(self, value: WireValue, depth: int) -> dict[str, Value]:
        self._check_depth(depth)
        return {key: self._read(item, depth) for key, item in value.map.items.items()}

    def _read_list(self, value: WireValue, depth: int) -> list[Value]:
        self._check_depth(depth)
        return [self._read(item, depth) for item in value.list.items]

    def _check_depth(self, depth: int) -> None:
        if depth > self._limits.max_depth:
            raise CodecError(f"nested deeper than {self._limits.max_depth} levels")

    def _read(self, value: WireValue, depth: int) -> Value:
        self._values += 1
        if self._values > self._limits.max_values:
            raise CodecError(f"more than {self._limits.max_values:,} values")
        match value.WhichOneof("kind"):
            case "null":
                return None
            case "boolean":
                return value.boolean
            case "integer":
                return value.integer
            case "number":
                return value.number
            case "text":
                return value.text
            case "array":
                return self._read_array(value)
            case "raw":
                return self._buffer(value.raw.buffer)
            case "map":
                return self.read_map(value, depth + 1)
            case "list":
                return self._read_list(value, depth + 1)
            case _:
                raise CodecError("a value of a kind that this version does not know")

    def _read_array(self, value: WireValue) -> Array:
        array = value.array
        if array.dtype not in DTYPES or len(array.shape) > self._limits.max_rank:
            raise CodecError(f'an array of dtype "{array.dtype}" and {len(array.shape)} dimensions is not allowed')
        try:
            return Array(array.dtype, tuple(array.shape), self._buffer(array.buffer))
        except ValueError as error:
            raise CodecError(str(error)) from error

    def _buffer(self, index: int) -> memoryview:
        if index >= len(self._buffers):
            raise CodecError(f"a value points to buffer {index} of {len(self._buffers)}")
        return self._buffers[index]
