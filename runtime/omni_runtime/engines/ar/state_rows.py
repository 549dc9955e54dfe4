"""Whose states a step makes, and where they are in its batch. For vLLM's process.

Done in every step, whose host time is what bounds a fast model: in arrays, and what stays the same is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy

from omni_runtime.engines.ar.takers import STATES_KEY

Integers: TypeAlias = "numpy.ndarray[Any, numpy.dtype[numpy.integer[Any]]]"
KEY, POSITION, COUNT = range(3)
"""The columns of a table: a request's key, the first position that its rows are of, and how many they are."""


@dataclass(frozen=True)
class StepRows:
    """`table` has a line for each request; `pieces` of the batch are all their rows, in the table's order."""

    table: Integers
    pieces: Sequence[slice]


class StateRows:
    """Finds them. From one step to the next, a batch is often of the same requests."""

    def __init__(self, key_of: Callable[[str], int | None]) -> None:
        self._key_of = key_of
        self._request_ids: list[str] = []
        self._places: list[int] = []
        """In the batch, of those that want their states."""
        self._lines: Integers = numpy.empty((0, 3), dtype=numpy.int64)

    def of_step(self, request_ids: Sequence[str], starts: Integers, computed: Integers) -> StepRows | None:
        """Of a batch with these requests, whose tokens begin at `starts`, which has one more for the end.

        None if nobody wants any.
        """
        if request_ids != self._request_ids:
            self._look_up(list(request_ids))
        if not self._places:
            return None
        table, counts = self._lines.copy(), starts[1:] - starts[:-1]
        if len(self._places) == len(request_ids):
            table[:, POSITION], table[:, COUNT] = computed, counts
            return StepRows(table, [slice(0, int(starts[-1]))])
        table[:, POSITION], table[:, COUNT] = computed[self._places], counts[self._places]
        return StepRows(table, joined(starts[self._places].tolist(), table[:, COUNT].tolist()))

    def beginning(self, rows: StepRows) -> list[tuple[int, str]]:
        """The keys and ids of requests whose prompts begin in this step."""
        lines = numpy.flatnonzero(rows.table[:, POSITION] == 0).tolist()
        return [(int(rows.table[line, KEY]), self._request_ids[self._places[line]]) for line in lines]

    def _look_up(self, request_ids: list[str]) -> None:
        wanted = [(place, key) for place, name in enumerate(request_ids) if (key := self._key_of(name)) is not None]
        self._request_ids, self._places = request_ids, [place for place, _ in wanted]
        self._lines = numpy.array([(key, 0, 0) for _, key in wanted], dtype=numpy.int64).reshape(-1, 3)


def states_key(params: Any) -> int | None:
    """Of vLLM's parameters of a request."""
    key: int | None = ((params and params.extra_args) or {}).get(STATES_KEY)
    return key


def joined(starts: Sequence[int], counts: Sequence[int]) -> list[slice]:
    """Neighbours as one piece."""
    pieces: list[slice] = []
    for start, count in zip(starts, counts, strict=True):
        if pieces and pieces[-1].stop == start:
            pieces[-1] = slice(pieces[-1].start, start + count)
        else:
            pieces.append(slice(start, start + count))
    return pieces
