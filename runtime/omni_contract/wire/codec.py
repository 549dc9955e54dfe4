"""Payloads as bytes: a JSON head, then raw buffers, each aligned to 64 bytes. No pickle; every claim is checked.

Layout: prelude (16 bytes) | head | padding | buffer 0 | padding | buffer 1 ...

The head is `{"root": {...}, "buffers": [...], "checksum": ...}`. `root` is the payload, with null in the place of each
array and of raw bytes; `buffers` says where each of those belongs and what it is. So a payload without buffers is read
and written by compiled code alone. A reader ignores keys of the head that it does not know.
"""

import ctypes
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast

from pydantic_core import from_json, to_json

from omni_contract.wire.layouts import (
    ALIGNMENT,
    MOST_HEAD_BYTES,
    Form,
    Gaps,
    Layout,
    Remembered,
    arrays_of,
    gaps_between,
    layout_of,
)
from omni_contract.wire.payload import DTYPES, Array, Payload, Value, are_integers

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | dict[str, Json] | None"
Head: TypeAlias = dict[str, Any]
"""As it was read: nothing is known of its values."""
Path: TypeAlias = tuple[str | int, ...]
"""Where a value is in a payload: keys of maps and indices of lists, from the root on."""
Slot: TypeAlias = tuple[Sequence[Json], int, str | None, tuple[int, ...]]
"""A buffer: where it belongs, its length, and dtype and shape of an array; raw bytes have no dtype."""

MAGIC = b"OMNI"
FORMAT = 1
PRELUDE = struct.Struct("<4sB3xI4x")
LEAST_INTEGER, MOST_INTEGER = -(2**63), 2**63 - 1


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
GAPS: Remembered[Form, Gaps] = Remembered()
LAYOUTS: Remembered[tuple[bytes, int], Layout] = Remembered()
"""By the text of the head and the length of the payload. Both hold what was checked against the limits above."""


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
    arrays = arrays_of(payload) if limits is LIMITS and not checksum else None
    if arrays is not None and (known := GAPS.find(arrays.form)) is not None:
        return EncodedPayload(known.filled(arrays.buffers), known.size_bytes)
    writer = _Writer(limits)
    head = _head(writer, payload, checksum, limits)
    if not writer.buffers:
        return EncodedPayload((memoryview(head),), len(head))
    gaps = gaps_between(head, writer.buffers)
    if arrays is not None and len(head) <= MOST_HEAD_BYTES:
        GAPS.add(arrays.form, gaps)
    return EncodedPayload(gaps.filled(writer.buffers), gaps.size_bytes)


def _head(writer: "_Writer", payload: Payload, checksum: bool, limits: CodecLimits) -> bytes:
    """With the prelude. The buffers are the writer's from here on."""
    head: dict[str, Json] = {"root": writer.map(payload, (), 1)}
    if writer.buffers:
        head["buffers"] = writer.entries
    if checksum:
        head["checksum"] = _checksum(writer.buffers)
    text = _json(head)
    if len(text) > limits.max_header_bytes:
        raise CodecError(f"the header takes {len(text):,} bytes, above the limit of {limits.max_header_bytes:,}")
    return PRELUDE.pack(MAGIC, FORMAT, len(text)) + text


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
    text = bytes(view[PRELUDE.size : end])
    if end != view.nbytes and limits is LIMITS and (known := LAYOUTS.find((text, view.nbytes))) is not None:
        return known.payload(_copy(view) if own_memory else view)
    head = _parse(text, limits)
    payload = head.get("root")
    if not isinstance(payload, dict):
        raise CodecError("the root of a payload must be a map")
    if "buffers" in head or "checksum" in head or end != view.nbytes:
        _fill_in(payload, head, _copy(view) if own_memory else view, end, limits)
        _remember(text, head, payload, end)
    return payload


def _remember(text: bytes, head: Head, payload: Payload, end: int) -> None:
    """A head that says nothing but where arrays lie, if they do so in their order."""
    layout = layout_of(payload, end) if len(text) <= MOST_HEAD_BYTES and "checksum" not in head else None
    if layout is not None and [slot["at"] for slot in head["buffers"]] == [[array.name] for array in layout.arrays]:
        LAYOUTS.add((text, layout.size_bytes), layout)


def _fill_in(payload: dict[str, Value], head: Head, view: memoryview, end: int, limits: CodecLimits) -> None:
    """Puts the buffers behind the head, which ends there, into their places."""
    entries = head.get("buffers", [])
    if not isinstance(entries, list):
        raise CodecError("the buffers must be a list")
    position, checksum, is_checked = end, 0, "checksum" in head
    for entry in entries:
        path, size_bytes, dtype, shape = _slot(entry, limits)
        start = position + -position % ALIGNMENT
        position = start + size_bytes
        buffer = view[start:position]
        if buffer.nbytes != size_bytes:
            raise CodecError(f"a buffer of {size_bytes:,} bytes ends past the payload's {view.nbytes:,} bytes")
        if is_checked:
            checksum = zlib.crc32(buffer, checksum)
        _place(payload, path, buffer if dtype is None else _array(dtype, shape, buffer))
    if position != view.nbytes:
        raise CodecError(f"the payload has {view.nbytes:,} bytes, its header describes {position:,}")
    if is_checked and head["checksum"] != checksum:
        raise CodecError("the checksum of the buffers does not match")


def allocate(size_bytes: int) -> memoryview:
    """Writable memory that starts on an aligned address, so that arrays decoded from it are aligned as well."""
    block = bytearray(size_bytes + ALIGNMENT)
    offset = -ctypes.addressof(ctypes.c_char.from_buffer(block)) % ALIGNMENT
    return memoryview(block)[offset : offset + size_bytes]


def _copy(view: memoryview) -> memoryview:
    block = allocate(view.nbytes)
    block[:] = view
    return block


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


def _parse(text: bytes, limits: CodecLimits) -> Head:
    try:
        head = from_json(text)
    except ValueError as error:
        raise CodecError("the header is damaged or nested too deeply") from error
    if not isinstance(head, dict):
        raise CodecError("the header is not a JSON object")
    # A value takes two characters at least and a level a bracket, so short heads need no closer look.
    if len(text) > 2 * limits.max_values or text.count(b"{") + text.count(b"[") > limits.max_depth:
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


def _slot(entry: Json, limits: CodecLimits) -> Slot:
    """Written for speed: a decoder spends most of its time here."""
    if isinstance(entry, dict):
        kind, path, size_bytes = entry.get("kind"), entry.get("at"), entry.get("bytes")
        if isinstance(path, list) and isinstance(size_bytes, int) and size_bytes >= 0:
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


def _is_shape(sides: list[Json]) -> TypeGuard[list[int]]:
    return all([type(side) is int and side >= 0 for side in sides])


def _place(root: dict[str, Value], path: Sequence[Json], value: Value) -> None:
    """Puts a buffer's value where the payload has a null for it."""
    holder: Any = root
    try:
        *above, last = path
        for key in above:
            holder = holder[key]
        is_free = holder[last] is None
    except (KeyError, IndexError, TypeError, ValueError):
        is_free = False
    if not is_free:
        raise CodecError(f"{_named(path)}: a buffer belongs here, but the payload has no place for it")
    holder[last] = value


def _named(path: Sequence[Json]) -> str:
    return "payload" + "".join(f".{key}" if isinstance(key, str) else f"[{key}]" for key in path)


def _is_plain(value: Value) -> TypeGuard[bool | int | float | str | None]:
    """True for what JSON has as it is: most values, so that they need no closer look."""
    kind = type(value)
    return kind in (str, float, bool, NoneType) or (kind is int and LEAST_INTEGER <= cast(int, value) <= MOST_INTEGER)


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

    def _list(self, items: Sequence[Value], path: Path, depth: int) -> Sequence[Json]:
        self._enter(len(items), path, depth)
        if are_integers(items, LEAST_INTEGER, MOST_INTEGER):
            return items
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
            case int() if not LEAST_INTEGER <= value <= MOST_INTEGER:
                raise CodecError(f"{_named(path)}: {value} does not fit into 64 bits")
            case int() | float() | str():
                return value
            case bytes() | bytearray() | memoryview():
                self._add_raw(memoryview(value), path)
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
        self._add(array.data, path)
        dtype, shape, size_bytes = array.dtype, array.shape, array.data.nbytes
        self.entries.append({"kind": "array", "dtype": dtype, "shape": shape, "at": path, "bytes": size_bytes})

    def _add_raw(self, data: memoryview, path: Path) -> None:
        self._add(data, path)
        self.entries.append({"kind": "raw", "at": path, "bytes": data.nbytes})

    def _add(self, data: memoryview, path: Path) -> None:
        if not data.c_contiguous:
            raise CodecError(f"{_named(path)}: the memory is not contiguous; make a contiguous copy first")
        # An empty view of more than one dimension cannot be cast.
        self.buffers.append(data.cast("B") if data.nbytes else memoryview(b""))
