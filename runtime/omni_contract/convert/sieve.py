"""Takes the keys that can be kept out of an old file, and says what is wrong with the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import JsonValue

from omni_contract.api.nearest import did_you_mean
from omni_contract.api.problems import Path, Problem
from omni_contract.convert.keys import DEMANDS, Key, Table, is_integer

Kept: TypeAlias = Mapping[str, JsonValue]
"""Keys of one map of the file, each known and of its type."""


@dataclass(frozen=True)
class Refused:
    """A key or value that cannot be kept, in a file that is sound otherwise."""

    path: Path
    reason: str
    way_out: str = "remove it"

    @property
    def problem(self) -> Problem:
        return Problem(self.path, f"{self.reason}; {self.way_out}")


class Sieve:
    """Collects, over all maps of a file, what must be corrected and what may be left out if the user says so."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.refused: list[Refused] = []

    def kept(self, data: JsonValue, keys: Table, path: Path, beside: str = "") -> Kept:
        """As everywhere in our files, an empty key is no key. `beside` is what to do with a key that nobody knows."""
        if not isinstance(data, dict):
            if data is not None:
                self.wrong(path, f"{shown(data)} is not {DEMANDS['map']}")
            return {}
        for name in data.keys() - keys.keys():
            hint = did_you_mean(name, keys) or beside or f"; the keys here are: {', '.join(keys)}"
            self.wrong((*path, name), f'unknown key "{name}"{hint}')
        return {
            name: value
            for name, value in data.items()
            if name in keys and value is not None and self._passes(keys[name], value, path)
        }

    def items(self, data: JsonValue, path: Path) -> list[tuple[Path, JsonValue]]:
        """Of a list, each with its place."""
        if not isinstance(data, list):
            return []
        return [((*path, index), item) for index, item in enumerate(data)]

    def wrong(self, path: Path, message: str) -> None:
        self.problems.append(Problem(path, message))

    def refuse(self, refused: Refused) -> None:
        self.refused.append(refused)

    def _passes(self, key: Key, value: JsonValue, path: Path) -> bool:
        if not key.holds(value):
            self.wrong((*path, key.name), f"{shown(value)} is not {DEMANDS[key.takes]}")
            return False
        if not key.accepts(value):
            told = key.refused if key.is_refused else f"{shown(value)} cannot be kept: {key.refused}"
            self.refuse(Refused((*path, key.name), told, key.way_out(value)))
            return False
        return True


def shown(value: JsonValue) -> str:
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text if len(text) <= 60 else f"{text[:57]}…"
    return f'"{text}"' if isinstance(value, str) else text


def text(keys: Kept, name: str) -> str | None:
    value = keys.get(name)
    return value if isinstance(value, str) else None


def integer(keys: Kept, name: str) -> int | None:
    value = keys.get(name)
    return int(str(value)) if is_integer(value) else None


def stage_ids(value: JsonValue) -> tuple[int, ...]:
    """Of a key that the sieve has let through."""
    return tuple(int(str(item)) for item in (value if isinstance(value, list) else [value]) if item is not None)
