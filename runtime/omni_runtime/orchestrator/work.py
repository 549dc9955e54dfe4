"""How much work a request is at a stage, learned from those that went before. Pure bookkeeping, no clock."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeAlias

from omni_contract.wire.payload import Payload, Value

SIZES = ("width", "height", "steps", "num_frames", "max_tokens", "n")
"""Parameters that say how long a request takes, whatever the family."""

NO_SIZES = (0,) * len(SIZES)

WEIGHT = 0.2
"""Of the newest time against all before it."""

MOST_KINDS = 256

Kind: TypeAlias = tuple[int, ...]
"""Requests of one kind take about as long: their sizes agree to a factor of two."""


def kind_of(payload: Payload, parameters: Mapping[str, Value]) -> Kind:
    """Sizes and the length of what was sent, each by its power of two; 0 where it is not given."""
    length = sum(len(value) for value in payload.values() if isinstance(value, str | bytes))
    if not parameters:
        return (*NO_SIZES, length.bit_length())
    sizes = (parameters.get(name) for name in SIZES)
    return (*(size.bit_length() if isinstance(size, int) else 0 for size in sizes), length.bit_length())


ANY: Kind = ()
"""Of a request that nothing is known of."""


class WorkModel:
    """What one stage's requests took, as seconds between start and answer, by kind."""

    def __init__(self) -> None:
        self._took_s: OrderedDict[Kind, float] = OrderedDict()
        self.typical_s = 0.0
        """Over all kinds; 0 before the first request has been answered."""

    def predict_s(self, kind: Kind) -> float:
        """A kind not seen yet is as much work as the others on average."""
        return self._took_s.get(kind) or self.typical_s or 1.0

    def learn(self, kind: Kind, took_s: float) -> None:
        self._took_s[kind] = _closer(self._took_s.get(kind, 0.0), took_s)
        self._took_s.move_to_end(kind)
        if len(self._took_s) > MOST_KINDS:
            self._took_s.popitem(last=False)
        self.typical_s = _closer(self.typical_s, took_s)


class Backlog:
    """The work that one replica has been given and not done, and how fast it is compared with the stage's others."""

    def __init__(self, model: WorkModel) -> None:
        self._model = model
        self.open: dict[tuple[str, int], tuple[Kind, float, float]] = {}
        self.work_s = 0.0
        self.slowness = 1.0

    def __len__(self) -> int:
        return len(self.open)

    def begin(self, attempt: tuple[str, int], kind: Kind, now_s: float) -> None:
        predicted_s = self._model.predict_s(kind)
        self.open[attempt] = kind, predicted_s, now_s
        self.work_s += predicted_s

    def end(self, attempt: tuple[str, int], now_s: float, is_answered: bool) -> bool:
        """False if it was not open. Only answered requests teach anything: a failed one says nothing about its kind."""
        begun = self.open.pop(attempt, None)
        if begun is None:
            return False
        kind, predicted_s, started_s = begun
        self.work_s = self.work_s - predicted_s if self.open else 0.0
        if is_answered:
            took_s = now_s - started_s
            self.slowness = _closer(self.slowness, took_s / self._model.predict_s(kind))
            self._model.learn(kind, took_s)
        return True

    def clear(self) -> None:
        self.open.clear()
        self.work_s = 0.0


def _closer(known: float, newest: float) -> float:
    return known + WEIGHT * (newest - known) if known else newest
