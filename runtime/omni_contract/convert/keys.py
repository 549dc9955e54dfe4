"""What a key of an old stage file becomes, as a value: the tables beside this module have one line for each key."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import JsonValue

Takes: TypeAlias = Literal["bool", "integer", "number", "text", "id", "ids", "devices", "list", "map", "any"]

DEMANDS: Mapping[Takes, str] = {
    "bool": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "text": "text",
    "id": "the stage_id of a stage",
    "ids": "a list of stage_ids",
    "devices": 'device numbers with commas between them, like "0,1"',
    "list": "a list",
    "map": "a map of keys and values",
}

OldKind: TypeAlias = Literal["ar", "generation"]
ENGINE = "ENGINE"
CLASS_WORDS: Mapping[str, OldKind] = {"GPUAR": "ar", "NPUAR": "ar", "OmniAR": "ar", "Generation": "generation"}
"""What the worker and scheduler classes of the sources have in their names."""


@dataclass(frozen=True)
class Key:
    """One key: it becomes a field, is what always holds here, or is refused."""

    name: str
    takes: Takes
    becomes: str = ""
    """The field that gets the value, or why nothing need be written."""
    only: tuple[JsonValue, ...] = ()
    """The values that mean what always holds here; others are refused."""
    refused: str = ""
    """Why the key, or a value that is none of `only`, cannot be kept."""
    instead: str = "remove it"
    """The way out of a refusal; ENGINE stands for the engine kind that the refused class belongs to."""
    codec: str = ""
    """Why a generation stage has no such setting, if only ar stages have; then it is left out with this reason."""

    @property
    def is_refused(self) -> bool:
        """Whatever its value."""
        return not self.becomes

    def way_out(self, value: JsonValue) -> str:
        return self.instead.replace(ENGINE, engine_of(value) or "ar or generation")

    def accepts(self, value: JsonValue) -> bool:
        """Whether the value can be kept."""
        return not self.is_refused and (not self.only or value in self.only)

    def holds(self, value: JsonValue) -> bool:
        """Whether the value is of the key's type."""
        return self.is_refused or _is_of(self.takes, value)


Table: TypeAlias = Mapping[str, Key]


def table(*keys: Key) -> Table:
    return {key.name: key for key in keys}


def engine_of(class_path: JsonValue) -> OldKind | None:
    """The engine kind whose worker or scheduler the class is; None of a class that no source has."""
    name = str(class_path).rpartition(".")[2]
    return next((kind for word, kind in CLASS_WORDS.items() if word in name), None)


def is_integer(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_id(value: JsonValue) -> bool:
    return is_integer(value) or (isinstance(value, str) and value.isdecimal())


def _is_of(takes: Takes, value: JsonValue) -> bool:
    match takes:
        case "bool":
            return isinstance(value, bool)
        case "integer":
            return is_integer(value)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "text":
            return isinstance(value, str)
        case "id":
            return _is_id(value)
        case "ids":
            return isinstance(value, list) and all(map(_is_id, value))
        case "devices":
            return is_integer(value) or (isinstance(value, str) and all(map(_is_id, value.split(","))))
        case "list":
            return isinstance(value, list)
        case "map":
            return isinstance(value, dict)
        case "any":
            return True
