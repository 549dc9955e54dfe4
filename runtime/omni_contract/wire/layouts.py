"""Payloads of nothing but arrays, such as most edges carry: what the head of one says is worked out once for all alike.

A stage makes the same names, types and shapes again and again, and looking up what is known of them takes a third of
what writing or reading JSON does. Used by the codec alone, which remembers no head that it has not checked.
"""

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from omni_contract.wire.payload import Array, Payload, Value

ALIGNMENT = 64
MOST_KNOWN = 256
MOST_HEAD_BYTES = 1024
"""A longer head is not remembered: what peers send cannot fill our memory."""

Form: TypeAlias = tuple[tuple[str, str, tuple[int, ...]], ...]
"""Name, dtype and shape of each array: all that their head depends on."""
Key = TypeVar("Key")
Known = TypeVar("Known")


class Arrays(NamedTuple):
    """A payload that has nothing else."""

    form: Form
    buffers: list[memoryview]


def arrays_of(payload: Payload) -> Arrays | None:
    """None if there is anything else, or an array that cannot be sent as it lies."""
    form, buffers = [], []
    for name, value in payload.items():
        if type(value) is not Array or not (data := value.data).c_contiguous or not data.nbytes:
            return None
        form.append((name, value.dtype, tuple(value.shape)))
        buffers.append(data.cast("B"))
    return Arrays(tuple(form), buffers)


class Gaps(NamedTuple):
    """What comes before each buffer, the head first, and how long the payload is with all of them."""

    before: Sequence[memoryview]
    size_bytes: int

    def filled(self, buffers: Iterable[memoryview]) -> tuple[memoryview, ...]:
        """The parts of the payload."""
        return tuple([part for pair in zip(self.before, buffers, strict=True) for part in pair if part.nbytes])


def gaps_between(head: bytes, buffers: Iterable[memoryview]) -> Gaps:
    """Each buffer begins on an aligned position."""
    gaps, position, before = [], 0, head
    for buffer in buffers:
        gap = before + bytes(-(position + len(before)) % ALIGNMENT)
        gaps.append(memoryview(gap))
        position += len(gap) + buffer.nbytes
        before = b""
    return Gaps(tuple(gaps), position)


class Placed(NamedTuple):
    """An array, and where its bytes lie in the payload."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class Layout(NamedTuple):
    """The arrays behind a head, and how long the payload is with all of them."""

    arrays: Sequence[Placed]
    size_bytes: int

    def payload(self, view: memoryview) -> dict[str, Value]:
        return {name: Array(dtype, shape, view[start:stop]) for name, dtype, shape, start, stop in self.arrays}


def layout_of(payload: Payload, position: int) -> Layout | None:
    """How arrays lie that follow each other from there on; None if there is anything else."""
    arrays = []
    for name, value in payload.items():
        if type(value) is not Array:
            return None
        start = position + -position % ALIGNMENT
        position = start + value.data.nbytes
        arrays.append(Placed(name, value.dtype, value.shape, start, position))
    return Layout(tuple(arrays), position)


class Remembered(Generic[Key, Known]):
    """What was worked out lately. With too much of it all is forgotten, which is cheaper than to know the oldest."""

    def __init__(self) -> None:
        self._known: dict[Key, Known] = {}
        self.find = self._known.get

    def add(self, key: Key, known: Known) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[key] = known
