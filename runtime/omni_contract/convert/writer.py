"""Data as YAML for people: keys in their order, short maps on one line, comments above what they are about."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import yaml
from pydantic import JsonValue

from omni_contract.api.problems import Path

Notes: TypeAlias = Mapping[Path, Sequence[str]]
"""Comments, each at the place of the key or item that it stands above; at () those of the whole file."""
WIDTH = 110
ALWAYS_OPEN = 2
"""Maps up to this depth have a line for each key, however short they are."""


def written(data: Mapping[str, JsonValue], notes: Notes) -> str:
    lines = [*_comments(notes.get((), ()), ""), *_Writer(notes).map(data, (), "")]
    return "\n".join(lines) + "\n"


class _Writer:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def map(self, data: Mapping[str, JsonValue], path: Path, margin: str) -> Iterator[str]:
        for key, value in data.items():
            inner = (*path, key)
            yield from _comments(self._notes.get(inner, ()), margin)
            if isinstance(value, dict) and self._is_open(value, inner):
                yield f"{margin}{key}:"
                yield from self.map(value, inner, f"{margin}  ")
            elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
                yield f"{margin}{key}:"
                yield from self._items(value, inner, f"{margin}  ")
            else:
                yield f"{margin}{key}: {_flow(value)}"

    def _items(self, data: Sequence[JsonValue], path: Path, margin: str) -> Iterator[str]:
        for index, item in enumerate(data):
            inner = (*path, index)
            yield from _comments(self._notes.get(inner, ()), margin)
            if isinstance(item, dict) and self._is_open(item, inner):
                first, *others = self.map(item, inner, f"{margin}  ")
                yield f"{margin}- {first.removeprefix(margin).lstrip()}"
                yield from others
            else:
                yield f"{margin}- {_flow(item)}"

    def _is_open(self, data: Mapping[str, JsonValue], path: Path) -> bool:
        """Whether the map takes a line for each key."""
        if not data:
            return False
        has_notes = any(place[: len(path)] == path and place != path for place in self._notes)
        is_flat = not any(isinstance(value, dict) and value for value in data.values())
        return len(path) <= ALWAYS_OPEN or has_notes or not is_flat or len(_flow(data)) > WIDTH - 20


def _comments(notes: Sequence[str], margin: str) -> list[str]:
    return [f"{margin}# {line}" for note in notes for line in textwrap.wrap(note, WIDTH - len(margin) - 2) or [""]]


def _flow(value: JsonValue | Mapping[str, JsonValue]) -> str:
    """On one line, without the mark with which YAML ends a document that is a scalar."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True, sort_keys=False)
    return text.removesuffix("...\n").strip()
