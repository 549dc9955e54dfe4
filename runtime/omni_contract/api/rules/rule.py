"""A rule between fields, said twice: in CEL for the API server, in Python for `resolve` and `omni validate`.

The sentence is written once. Its placeholders are CEL paths such as {self.name} or {item.from}; what a path cannot say
is a named value with a CEL and a Python half. A test holds both halves against the same bad files.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol, TypeAlias

from pydantic.alias_generators import to_snake

from omni_contract.api.problems import Path, Problem

SchemaPath: TypeAlias = tuple[str, ...]
"""Where in the resource a rule stands: field names, with "[]" for the items of a list."""

PLACEHOLDER = re.compile(r"\{([a-zA-Z.]+)\}")


@dataclass(frozen=True)
class Value:
    """What a placeholder stands for."""

    cel: str
    python: Callable[[Any], object]


class Rule(Protocol):
    @property
    def at(self) -> SchemaPath: ...

    @property
    def message(self) -> str: ...

    def validation(self) -> dict[str, str]:
        """The rule as an entry of x-kubernetes-validations."""
        ...

    def problems(self, node: Any, path: Path) -> Iterator[Problem]:
        """How the object at `path` breaks the rule."""
        ...


@dataclass(frozen=True)
class FieldRule:
    """A rule about one object: `cel` with `self` and `holds` with the parsed object mean the same."""

    at: SchemaPath
    cel: str
    holds: Callable[[Any], bool]
    message: str
    pointer: str | None = None
    """The field at fault, if it is not the whole object, for example "shm.size"."""
    values: Mapping[str, Value] = field(default_factory=dict)

    def validation(self) -> dict[str, str]:
        pointer = {"fieldPath": f".{self.pointer}"} if self.pointer else {}
        return {"rule": self.cel, **_message(self.message, self.values, {"self": "self"})} | pointer

    def problems(self, node: Any, path: Path) -> Iterator[Problem]:
        if not self.holds(node):
            where = (*path, *self.pointer.split(".")) if self.pointer else path
            yield Problem(where, _sentence(self.message, self.values, {"self": node}))


@dataclass(frozen=True)
class ItemRule:
    """A rule about each item of a list that needs the object around it: `item` in CEL, `holds`' second argument."""

    at: SchemaPath
    items: str
    cel: str
    holds: Callable[[Any, Any], bool]
    message: str
    unless: str | None = None
    """CEL of when the rule does not matter; `holds` includes it."""
    hint: Callable[[Any, Any], str] | None = None
    """What to add to the sentence that CEL cannot find out, such as the nearest name."""

    def validation(self) -> dict[str, str]:
        offender = f"self.{self.items}.filter(item, !({self.cel}))[0]"
        every = f"self.{self.items}.all(item, {self.cel})"
        return {
            "rule": f"{self.unless} || {every}" if self.unless else every,
            **_message(self.message, {}, {"self": "self", "item": offender}),
            "fieldPath": f".{self.items}",
        }

    def problems(self, node: Any, path: Path) -> Iterator[Problem]:
        for index, item in enumerate(getattr(node, to_snake(self.items))):
            if not self.holds(node, item):
                sentence = _sentence(self.message, {}, {"self": node, "item": item})
                yield Problem((*path, self.items, index), sentence + (self.hint(node, item) if self.hint else ""))


def _message(template: str, values: Mapping[str, Value], roots: Mapping[str, str]) -> dict[str, str]:
    """`message` for a plain sentence, `messageExpression` for one with placeholders."""
    placeholders = PLACEHOLDER.findall(template)
    if not placeholders:
        return {"message": template}
    # `format` and not `+`, because the API server's cost estimate takes the sum of strings as unbounded.
    text = json.dumps(PLACEHOLDER.sub("%s", template.replace("%", "%%")), ensure_ascii=False)
    terms = ", ".join(_cel(placeholder, values, roots) for placeholder in placeholders)
    return {"messageExpression": f"{text}.format([{terms}])"}


def _cel(placeholder: str, values: Mapping[str, Value], roots: Mapping[str, str]) -> str:
    if placeholder in values:
        return values[placeholder].cel
    root, _, rest = placeholder.partition(".")
    return f"{roots[root]}.{rest}" if rest else roots[root]


def _sentence(template: str, values: Mapping[str, Value], roots: Mapping[str, Any]) -> str:
    def text(match: re.Match[str]) -> str:
        placeholder = match.group(1)
        if placeholder in values:
            return str(values[placeholder].python(roots["self"]))
        root, *attributes = placeholder.split(".")
        return str(reduce(_attribute, attributes, roots[root]))

    return PLACEHOLDER.sub(text, template)


def _attribute(node: Any, name: str) -> Any:
    """The field with this name in the file: `from` is `from_` in Python, `nodePort` is `node_port`."""
    snake = to_snake(name)
    return getattr(node, snake) if hasattr(node, snake) else getattr(node, f"{snake}_")
