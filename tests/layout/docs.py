"""The commands in our documents: every ```console block, with what the document says they print.

The word after `console` says what a block needs: nothing (it runs anywhere), `models` (torch), `serve` (its first
command stays up while the others run), `make` (a task of the Makefile), `cluster` (a cluster with the chart),
`clusters` (a transcript of the test clusters, whose commands the tests of tests/cluster run).
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.layout.source import CHECKOUT

BLOCK = re.compile(r"^```console ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = ("", "models", "serve", "make", "cluster", "clusters")
ANYTHING = "..."
HARMLESS = ("omni", "sed", "python -m tests.layout.")
"""How a command begins that may be run on anybody's machine without asking."""


@dataclass(frozen=True)
class Command:
    line: str
    printed: str
    """As the document shows it; "..." stands for anything."""

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line)


@dataclass(frozen=True)
class Block:
    document: str
    number: int
    needs: str
    commands: tuple[Command, ...]

    @property
    def is_harmless(self) -> bool:
        return all(command.line.startswith(HARMLESS) for command in self.commands)

    def __str__(self) -> str:
        return f"{self.document}:{self.number}"


def documents(root: Path = CHECKOUT) -> list[Path]:
    return [*root.glob("*.md"), *sorted((root / "docs").rglob("*.md"))]


def blocks_of(name: str, text: str) -> Iterator[Block]:
    for found in BLOCK.finditer(text):
        number = text.count("\n", 0, found.start()) + 1
        yield Block(name, number, found[1], tuple(_commands(found[2])))


def all_blocks(root: Path = CHECKOUT) -> list[Block]:
    return [block for path in documents(root) for block in blocks_of(str(path.relative_to(root)), path.read_text())]


def _commands(text: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, printed = part.partition("\n")
        yield Command(line, printed)


def is_as_shown(printed: str, shown: str) -> bool:
    """Whether the output is what the document says; a document that shows nothing promises nothing."""
    if not shown:
        return True
    pattern = ".*".join(re.escape(part) for part in shown.strip().split(ANYTHING))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None
