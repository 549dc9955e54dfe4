"""One fault of a model file: where it is and what to do about it. Found by the parser, the rules and `resolve`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list indexes as they stand in the YAML file, from the document's root: ("spec", "stages", 0, "name")."""


@dataclass(frozen=True)
class Problem:
    path: Path
    message: str

    def __str__(self) -> str:
        return f"{dotted(self.path)}: {self.message}" if self.path else self.message


def dotted(path: Path) -> str:
    """spec.stages[0].name"""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


class InvalidModelError(ValueError):
    """A model cannot be used as it stands; carries every problem found, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
