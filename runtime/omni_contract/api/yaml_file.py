"""YAML text as JSON-like data that remembers where each key stood. Strict where YAML is lax: no twins, no surprises."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import yaml
from pydantic import JsonValue

from omni_contract.api.problems import Path, Problem

MAX_BYTES = 1 << 20
MAX_VALUES = 20_000
MAX_DEPTH = 50
TOO_DEEP = f"the document is deeper than {MAX_DEPTH} levels, the most that is read"
TOO_MANY = f"the document has more than {MAX_VALUES} values, aliases counted, the most that is read"
TIMESTAMP = "tag:yaml.org,2002:timestamp"
MERGE = "tag:yaml.org,2002:merge"
PLAIN_TAGS = frozenset({"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})

Mark: TypeAlias = yaml.Mark


@dataclass(frozen=True, order=True)
class Position:
    """Both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Document:
    """One document of a file. `problems` are those of the YAML itself; the data is as complete as it can be."""

    data: JsonValue
    positions: Mapping[Path, Position]
    problems: tuple[Problem, ...]

    def position(self, path: Path) -> Position:
        """Where the path stands; for what the file leaves out, where its nearest ancestor stands."""
        while path not in self.positions:
            path = path[:-1]
        return self.positions[path]


class YamlError(ValueError):
    """The text cannot be read at all."""

    def __init__(self, message: str, position: Position) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def documents(text: str) -> list[Document]:
    """The documents that are not empty; raises YamlError if the text is no YAML or is too large."""
    if len(text.encode()) > MAX_BYTES:
        raise YamlError(f"the file is larger than {MAX_BYTES // 1024} KiB, the most that is read", Position(1, 1))
    try:
        nodes = list(_compose(text))
        return [_Reader().document(node) for node in nodes]
    except yaml.MarkedYAMLError as error:
        raise YamlError(_sentence(error), _position(error.problem_mark or error.context_mark)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(
            f"the character U+{_code(error.character):04X} is not allowed in YAML", Position(line, 1)
        ) from error


class _Loader(yaml.SafeLoader):
    """SafeLoader, except that a date is text, as in JSON, and that depth is bounded before the stack is full."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise YamlError(TOO_DEEP, _position(event.start_mark))
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def fetch_flow_collection_start(self, token_class: type[yaml.Token]) -> None:
        """The scanner reads all open brackets before the composer sees one, in time that grows with their square."""
        if self.flow_level > MAX_DEPTH:
            raise YamlError(TOO_DEEP, _position(self.get_mark()))
        super().fetch_flow_collection_start(token_class)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _compose(text: str) -> Iterator[yaml.Node]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None and not _is_empty(node):
                yield node
    finally:
        loader.dispose()


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.value == ""


class _Reader:
    """Turns one document's nodes into data."""

    def __init__(self) -> None:
        self._scalars = _Loader("")
        self._positions: dict[Path, Position] = {}
        self._problems: list[Problem] = []
        self._values = 0

    def document(self, node: yaml.Node) -> Document:
        self._positions[()] = _position(node.start_mark)
        data = self._value(node, ())
        return Document(data, self._positions, tuple(self._problems))

    def _value(self, node: yaml.Node, path: Path) -> JsonValue:
        self._values += 1
        if self._values > MAX_VALUES or len(path) > MAX_DEPTH:
            raise YamlError(TOO_MANY if self._values > MAX_VALUES else TOO_DEEP, _position(node.start_mark))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node.tag not in PLAIN_TAGS:
            raise YamlError(f'the tag "{node.tag}" is not allowed; remove it', _position(node.start_mark))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return [self._item(child, (*path, index)) for index, child in enumerate(node.value)]

    def _item(self, node: yaml.Node, path: Path) -> JsonValue:
        self._positions[path] = _position(node.start_mark)
        return self._value(node, path)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, JsonValue]:
        own: dict[str, JsonValue] = {}
        merged = self._merged(node, path)
        for key_node, value_node in node.value:
            if key_node.tag == MERGE:
                continue
            key = self._key(key_node)
            inner = (*path, key)
            if key in own:
                first = self._positions[inner].line
                told = f'the key "{key}" stands here twice, first in line {first}; keep one'
                self._problems.append(Problem(inner, told))
            self._positions[inner] = _position(key_node.start_mark)
            own[key] = self._value(value_node, inner)
        return merged | own

    def _merged(self, node: yaml.MappingNode, path: Path) -> dict[str, JsonValue]:
        """What "<<" brings in; the first of several maps wins."""
        merged: dict[str, JsonValue] = {}
        for key_node, value_node in node.value:
            if key_node.tag == MERGE:
                maps = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                for other in reversed(maps):
                    brought = self._value(other, path)
                    if not isinstance(brought, dict):
                        raise YamlError('"<<" needs a map, or a list of maps', _position(key_node.start_mark))
                    merged |= brought
        return merged

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise YamlError("a key must be text, not a list or a map", _position(node.start_mark))
        return str(node.value)

    def _scalar(self, node: yaml.Node, path: Path) -> JsonValue:
        value = self._scalars.construct_object(node)
        is_number = isinstance(value, int | float) and math.isfinite(value)
        if value is None or is_number or isinstance(value, str):
            return value  # type: ignore[no-any-return]
        self._problems.append(Problem(path, f"{node.value} is neither text nor a finite number; put it into quotes"))
        return str(node.value)


def _position(mark: Mark | None) -> Position:
    return Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)


def _sentence(error: yaml.MarkedYAMLError) -> str:
    parts = [part for part in (error.context, error.problem) if part]
    return f"this is not YAML: {', '.join(parts) or 'it cannot be read'}; look at indentation, quotes and brackets here"


def _code(character: int | str) -> int:
    """PyYAML gives the number of the character, though its documentation says the character."""
    return ord(character) if isinstance(character, str) else character
