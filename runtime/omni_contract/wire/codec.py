"""Payloads as bytes: a JSON head, then raw buffers, each aligned to 64 bytes. No pickle; every claim is checked.

Layout: prelude (16 bytes) | head | padding | buffer 0 | padding | buffer 1 ...

The head is `{"root": {...}, "buffers": [...], "checksum": ...}`. `root` is the payload, with null in the place of each
array and of raw bytes; `buffers` says where each of those belongs and what it is. So a payload without buffers is read
and written by the standard library's C code alone. A reader ignores keys of the head that it does not know.
"""

import ctypes
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast

from pydantic_core import to_json

from omni_contract.wire.payload import DTYPES, Array, Payload, Value

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Path: TypeAlias = tuple[str | int, ...]
"""Where a value is in a payload: keys of maps and indices of lists, from the root on."""
Slot: TypeAlias = tuple[Sequence[str | int], int, str | None, tuple[int, ...]]
"""A buffer: where it belongs, its length, and dtype and shape of an array; raw bytes have no dtype."""

ALIGNMENT = 64
MAGIC = b"OMNI"
FORMAT = 1
PRELUDE = struct.Struct("<4sB3xI4x")
DECODER = json.JSONDecoder()


class CodecError(ValueError):
    """A payload that cannot travel, or bytes that are not a payload."""


@dataclass(frozen=True)
class CodecLimits:
    """What a payload may hold."""

    max_depth: int = 24
    max_values: int = 100_000
    max_rank: int = 16
    max_header_bytes: int = 16 * 2**20


LIMITS = CodecLimits()


class EncodedPayload(NamedTuple):
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
    head: dict[str, Json] = {"root": writer.map(payload, (), 1)}
    if writer.buffers:
        head["buffers"] = writer.entries
    if checksum:
        head["checksum"] = _checksum(writer.buffers)
    text = _json(head)
    if len(text) > limits.max_header_bytes:
        raise CodecError(f"the header takes {len(text):,} bytes, above the limit of {limits.max_header_bytes:,}")
    data = PRELUDE.pack(MAGIC, FORMAT, len(text)) + text
    return _assemble(data, writer.buffers) if writer.buffers else EncodedPayload((memoryview(data),), len(data))


def _json(head: dict[str, Json]) -> bytes:
    """Three times as fast as the standard library's encoder."""
    try:
        return to_json(head)
    except ValueError as error:
        raise CodecError(f"a payload's text must be Unicode: {error}") from error


def decode(
    data: bytes | bytearray | memoryview, limits: CodecLimits = LIMITS, own_memory: bool = False
) -> dict[str, Value]:
    """The payload in these bytes. Arrays and raw values are views of `data`, or of an aligned, writable copy of it."""
    view = memoryview(data).cast("B")
    end = PRELUDE.size + _head_bytes(view, limits)
    head = _parse(view[PRELUDE.size : end], limits)
    root = head.get("root")
    if not isinstance(root, dict):
        raise CodecError("the root of a payload must be a map")
    payload = cast(dict[str, Value], root)
    if "buffers" in head or "checksum" in head or end != view.nbytes:
        _fill_in(payload, head, _copy(view) if own_memory else view, end, limits)
    return payload


def _fill_in(payload: dict[str, Value], head: dict[str, Json], view: memoryview, end: int, limits: CodecLimits) -> None:
    """Puts the buffers behind the head into their places."""
    entries = head.get("buffers", [])
    if not isinstance(entries, list):
        raise CodecError("the buffers must be a list")
    slots = [_slot(entry, limits) for entry in entries]
    buffers = _split(view, end, [size_bytes for _, size_bytes, _, _ in slots])
    if "checksum" in head and head["checksum"] != _checksum(buffers):
        raise CodecError("the checksum of the buffers does not match")
    for (path, _, dtype, shape), buffer in zip(slots, buffers, strict=True):
        _place(payload, path, buffer if dtype is None else _array(dtype, shape, buffer))


def allocate(size_bytes: int) -> memoryview:
    """Writable memory that starts on an aligned address, so that arrays decoded from it are aligned as well."""
    block = bytearray(size_bytes + ALIGNMENT)
    offset = -ctypes.addressof(ctypes.c_char.from_buffer(block)) % ALIGNMENT
    return memoryview(block)[offset : offset + size_bytes]


def _copy(view: memoryview) -> memoryview:
    block = allocate(view.nbytes)
    block[:] = view
    return block


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
    return EncodedPayload(tuple(part for part in parts if part.nbytes), position)


def _checksum(buffers: Sequence[memoryview]) -> int:
    value = 0
    for buffer in buffers:
        value = zlib.crc32(buffer, value)
    return value


def _head_bytes(view: memoryview, limits: CodecLimits) -> int:
    if view.nbytes < PRELUDE.size:
        raise CodecError(f"{view.nbytes} bytes are too few for a payload")
    magic, version, head_bytes = PRELUDE.unpack_from(view)
    if magic != MAGIC or version != FORMAT:
        raise CodecError(f"not a payload of format {FORMAT}: it starts with {bytes(view[:5])!r}")
    if head_bytes > limits.max_header_bytes or PRELUDE.size + head_bytes > view.nbytes:
        raise CodecError(f"the header claims {head_bytes:,} bytes, which is above the limit or past the end")
    return int(head_bytes)


def _parse(data: memoryview, limits: CodecLimits) -> dict[str, Json]:
    try:
        text = str(data, "utf-8")
        head, end = DECODER.raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise CodecError("the header is damaged or nested too deeply") from error
    if end != len(text) or not isinstance(head, dict):
        raise CodecError("the header is not one JSON object")
    # A value takes two characters at least and a level a bracket, so short heads need no closer look.
    if len(text) > 2 * limits.max_values or text.count("{") + text.count("[") > limits.max_depth:
        _check_tree(head.get("root"), limits)
    return head


def _check_tree(root: Json, limits: CodecLimits) -> None:
    """Level by level, so that a deep tree cannot exhaust the stack."""
    level, depth, count = [root], 0, 0
    while holders := [value for value in level if isinstance(value, dict | list)]:
        level = [inner for holder in holders for inner in (holder.values() if isinstance(holder, dict) else holder)]
        depth += 1
        count += len(level)
        if depth > limits.max_depth:
            raise CodecError(f"nested deeper than {limits.max_depth} levels")
        if count > limits.max_values:
            raise CodecError(f"more than {limits.max_values:,} values")


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


def _slot(entry: Json, limits: CodecLimits) -> Slot:
    """Written for speed: a decoder spends most of its time here."""
    if isinstance(entry, dict):
        kind, path, size_bytes = entry.get("kind"), entry.get("at"), entry.get("bytes")
        if isinstance(path, list) and _is_path(path) and isinstance(size_bytes, int) and size_bytes >= 0:
            if kind == "raw":
                return path, size_bytes, None, ()
            dtype, shape = entry.get("dtype"), entry.get("shape")
            if kind == "array" and isinstance(dtype, str) and isinstance(shape, list) and _is_shape(shape):
                if dtype not in DTYPES or len(shape) > limits.max_rank:
                    raise CodecError(f'an array of dtype "{dtype}" and {len(shape)} dimensions is not allowed')
                return path, size_bytes, dtype, tuple(shape)
    raise CodecError("a buffer of a kind that this version does not know")


def _array(dtype: str, shape: tuple[int, ...], buffer: memoryview) -> Array:
    try:
        return Array(dtype, shape, buffer)
    except ValueError as error:
        raise CodecError(str(error)) from error


def _is_path(at: list[Json]) -> TypeGuard[list[str | int]]:
    return all([isinstance(key, (str, int)) for key in at])


def _is_shape(sides: list[Json]) -> TypeGuard[list[int]]:
    return all([isinstance(side, int) and side >= 0 for side in sides])


def _place(root: dict[str, Value], path: Sequence[str | int], value: Value) -> None:
    """Puts a buffer's value where the payload has a null for it."""
    holder: Any = root
    try:
        for key in path[:-1]:
            holder = holder[key]
        is_free = holder[path[-1]] is None
    except (KeyError, IndexError, TypeError):
        is_free = False
    if not is_free:
        raise CodecError(f"{_named(path)}: a buffer belongs here, but the payload has no place for it")
    holder[path[-1]] = value


def _named(path: Sequence[str | int]) -> str:
    return "payload" + "".join(f".{key}" if isinstance(key, str) else f"[{key}]" for key in path)


def _is_plain(value: Value) -> TypeGuard[bool | int | float | str | None]:
    """True for what JSON has as it is: most values, so that they need no closer look."""
    kind = type(value)
    return kind in (str, float, bool, NoneType) or (kind is int and -(2**63) <= cast(int, value) < 2**63)


class _Writer:
    """Copies the tree of a payload without its arrays and raw bytes, and collects those."""

    def __init__(self, limits: CodecLimits) -> None:
        self.buffers: list[memoryview] = []
        self.entries: list[Json] = []
        self._limits = limits
        self._values = 0

    def map(self, items: Mapping[str, Value], path: Path, depth: int) -> dict[str, Json]:
        self._enter(len(items), path, depth)
        tree: dict[str, Json] = {}
        for key, value in items.items():
            if not isinstance(key, str):
                raise CodecError(f"{_named(path)}: key {key!r} is not a string")
            tree[key] = value if _is_plain(value) else self._value(value, (*path, key), depth)
        return tree

    def _list(self, items: Sequence[Value], path: Path, depth: int) -> list[Json]:
        self._enter(len(items), path, depth)
        return [
            value if _is_plain(value) else self._value(value, (*path, index), depth)
            for index, value in enumerate(items)
        ]

    def _enter(self, count: int, path: Path, depth: int) -> None:
        self._values += count
        if depth > self._limits.max_depth:
            raise CodecError(f"{_named(path)}: nested deeper than {self._limits.max_depth} levels")
        if self._values > self._limits.max_values:
            most = self._limits.max_values
            raise CodecError(f"{_named(path)}: more than {most:,} values; send arrays instead of lists")

    def _value(self, value: Value, path: Path, depth: int) -> Json:
        match value:
            case Array():
                self._add_array(value, path)
                return None
            # Before Mapping, which is slow to find out that it does not match.
            case list() | tuple():
                return self._list(value, path, depth + 1)
            case int() if not -(2**63) <= value < 2**63:
                raise CodecError(f"{_named(path)}: {value} does not fit into 64 bits")
            case int() | float() | str():
                return value
            case bytes() | bytearray() | memoryview():
                self._add(memoryview(value), path, {"kind": "raw"})
                return None
            case dict() | Mapping():
                return self.map(value, path, depth + 1)
            case Sequence():
                return self._list(value, path, depth + 1)
            case _:
                name = type(value).__name__
                raise CodecError(f"{_named(path)}: a {name} cannot travel; convert it to Array, list or number")

    def _add_array(self, array: Array, path: Path) -> None:
        if len(array.shape) > self._limits.max_rank:
            most = self._limits.max_rank
            raise CodecError(f"{_named(path)}: {len(array.shape)} dimensions, the limit is {most}")
        self._add(array.data, path, {"kind": "array", "dtype": array.dtype, "shape": list(array.shape)})

    def _add(self, data: memoryview, path: Path, what: dict[str, Json]) -> None:
        if not data.c_contiguous:
            raise CodecError(f"{_named(path)}: the memory is not contiguous; make a contiguous copy first")
        # An empty view of more than one dimension cannot be cast.
        self.buffers.append(data.cast("B") if data.nbytes else memoryview(b""))
        self.entries.append({**what, "at": list(path), "bytes": data.nbytes})
