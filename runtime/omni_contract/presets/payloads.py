"""What a family's stages hand to each other, as data: the names, element types and shapes of a payload's entries."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from omni_contract.wire.payload import Array, Payload, Value

FLOATS = ("float16", "bfloat16", "float32")
INTEGERS = ("int32", "int64")

Dimension: TypeAlias = int | str
"""A fixed size, or a name: dimensions of one name are equal throughout a payload."""
Kind: TypeAlias = Literal["bool", "integer", "number", "text", "list", "map"]

KINDS: Mapping[Kind, tuple[type, ...]] = {
    "bool": (bool,),
    "integer": (int,),
    "number": (int, float),
    "text": (str,),
    "list": (list, tuple),
    "map": (dict,),
}


@dataclass(frozen=True)
class ArrayEntry:
    """An array of one of `dtypes`; for example (1, "tokens", "width")."""

    dtypes: tuple[str, ...]
    shape: tuple[Dimension, ...]
    is_optional: bool = False

    def __str__(self) -> str:
        return f"{'|'.join(self.dtypes)}[{', '.join(str(size) for size in self.shape)}]"


@dataclass(frozen=True)
class ValueEntry:
    """A plain value."""

    kind: Kind
    is_optional: bool = False

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True)
class PayloadSchema:
    """Every entry that a payload, or an item of a stream, may have."""

    entries: Mapping[str, ArrayEntry | ValueEntry]

    def problem(self, payload: Payload) -> str | None:
        """What is wrong with a payload, in words that follow "the payload of edge …"; None if it fits."""
        return next(self._problems(payload), None)

    def _problems(self, payload: Payload) -> Iterator[str]:
        for name in payload.keys() - self.entries.keys():
            yield f'has "{name}", which is none of {", ".join(self.entries)}'
        sizes: dict[str, int] = {}
        for name, entry in self.entries.items():
            if name in payload:
                if not _fits(entry, payload[name], sizes):
                    yield f'has {_shown(payload[name])} as "{name}", not {_expected(entry, sizes)}'
            elif not entry.is_optional:
                yield f'lacks "{name}", which is {entry}'


def _fits(entry: ArrayEntry | ValueEntry, value: Value, sizes: dict[str, int]) -> bool:
    """Notes the named dimensions in `sizes` as it meets them."""
    if isinstance(entry, ValueEntry):
        return isinstance(value, KINDS[entry.kind]) and (entry.kind == "bool" or not isinstance(value, bool))
    if not isinstance(value, Array) or value.dtype not in entry.dtypes or len(value.shape) != len(entry.shape):
        return False
    return all(
        (sizes.setdefault(expected, size) if isinstance(expected, str) else expected) == size
        for expected, size in zip(entry.shape, value.shape, strict=True)
    )


def _expected(entry: ArrayEntry | ValueEntry, sizes: Mapping[str, int]) -> str:
    """The entry, with the dimensions that other entries have settled."""
    if isinstance(entry, ValueEntry):
        return str(entry)
    settled = {name: size for name, size in sizes.items() if name in entry.shape}
    return f"{entry} with {', '.join(f'{name} {size}' for name, size in settled.items())}" if settled else str(entry)


def _shown(value: Value) -> str:
    if isinstance(value, Array):
        return f"{value.dtype}{list(value.shape)}"
    return f"a {type(value).__name__}"
