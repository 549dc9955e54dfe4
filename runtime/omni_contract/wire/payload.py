"""What travels between stages: nested maps and lists of arrays, bytes, numbers and strings. No torch, numpy, pickle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, TypeGuard, cast

DTYPES: Mapping[str, int] = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
}
"""Element types that may travel, by torch's name, with their size in bytes."""


NUMBERS = frozenset({bool, int, float})
"""Kinds that carry nothing but themselves."""


@dataclass(frozen=True)
class Array:
    """A dense row-major array; `data` holds exactly `size_bytes` bytes and may be a view of shared memory."""

    dtype: str
    shape: tuple[int, ...]
    data: memoryview

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f'dtype "{self.dtype}" cannot travel; use one of {", ".join(DTYPES)}')
        if self.data.nbytes != self.size_bytes:
            raise ValueError(f"{self.dtype}{list(self.shape)} needs {self.size_bytes} bytes, got {self.data.nbytes}")

    @property
    def size_bytes(self) -> int:
        return prod(self.shape) * DTYPES[self.dtype]


Value: TypeAlias = (
    "bool | int | float | str | bytes | memoryview | Array | Sequence[Value] | Mapping[str, Value] | None"
)
Payload: TypeAlias = Mapping[str, Value]


def are_integers(items: Sequence[Value], least: int, most: int) -> TypeGuard[Sequence[int]]:
    """Whether all are within these bounds. Compiled code alone looks at each, as prompts are long."""
    if not {int}.issuperset(map(type, items)):
        return False
    numbers = cast(Sequence[int], items)
    return not numbers or (min(numbers) >= least and max(numbers) <= most)


def data_bytes(value: Value) -> int:
    """How much a value carries: its arrays, raw bytes and text, without what frames them; numbers do not count."""
    match value:
        case int() | float() | None:
            return 0
        case Array():
            return value.size_bytes
        case memoryview():
            return value.nbytes
        case str() | bytes():
            return len(value)
        # Before the abstract kinds, which are slow to find out that they do not match.
        case dict() | Mapping():
            return sum(map(data_bytes, value.values()))
        case list() | tuple() | Sequence():
            return 0 if NUMBERS.issuperset(map(type, value)) else sum(map(data_bytes, value))
