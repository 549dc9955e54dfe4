"""Reads our Python source below operator/ and runtime/, and says what the bars need to know of it."""

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
TOPS = ("operator", "runtime")
GENERATED = ("_pb2.py", "_pb2_grpc.py")
BLANKET = ("", "Exception", "BaseException")
NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
BEFORE_A_DOCSTRING = {None, tokenize.COMMENT, tokenize.DEDENT, tokenize.INDENT, tokenize.NEWLINE, tokenize.NL}


@dataclass(frozen=True)
class Function:
    where: str
    name: str
    code_lines: int
    arguments: int
    has_return_type: bool


@dataclass(frozen=True)
class Source:
    """One file. A function's length counts lines of code: no blank, comment or docstring lines."""

    name: str
    text: str

    @cached_property
    def module(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    @cached_property
    def code_lines(self) -> frozenset[int]:
        lines: set[int] = set()
        previous = None
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            is_docstring = token.type == tokenize.STRING and previous in BEFORE_A_DOCSTRING
            if token.type not in NO_CODE and not is_docstring:
                lines.update(range(token.start[0], token.end[0] + 1))
            if token.type not in (tokenize.NL, tokenize.COMMENT):
                previous = token.type
        return frozenset(lines)

    @property
    def line_count(self) -> int:
        return self.text.count("\n")

    @property
    def functions(self) -> Iterator[Function]:
        for node in ast.walk(self.module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield self._function(node)

    @property
    def blanket_excepts(self) -> Iterator[str]:
        """The names of the functions that catch everything, outermost scope first: "Worker.run"."""
        yield from _blanket_scopes(self.module, ())

    @property
    def environment_names(self) -> Iterator[str]:
        """Names of variables read; "?" where the name is computed."""
        for node in ast.walk(self.module):
            if (name := _environment_read(node)) is not None:
                yield name

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
        span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        arguments = node.args
        return Function(
            where=f"{self.name}:{node.lineno}",
            name=node.name,
            code_lines=sum(number in self.code_lines for number in span),
            arguments=len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs),
            has_return_type=node.returns is not None,
        )


def our_sources(root: Path = CHECKOUT) -> list[Source]:
    paths = sorted(path for top in TOPS for path in (root / top).rglob("*.py") if not path.name.endswith(GENERATED))
    return [Source(str(path.relative_to(root)), path.read_text()) for path in paths]


def _blanket_scopes(node: ast.AST, scope: tuple[str, ...]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _blanket_scopes(child, (*scope, child.name))
            continue
        if isinstance(child, ast.ExceptHandler) and (ast.unparse(child.type) if child.type else "") in BLANKET:
            yield ".".join(scope)
        yield from _blanket_scopes(child, scope)


def _environment_read(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="getenv"), args=[name, *_]) if ast.unparse(owner) == "os":
            return _text(name)
        case ast.Call(func=ast.Attribute(value=owner, attr="get" | "pop" | "setdefault"), args=[name, *_]):
            return _text(name) if ast.unparse(owner).endswith("environ") else None
        case ast.Subscript(value=owner, slice=name) if ast.unparse(owner) in ("os.environ", "environ"):
            return _text(name)
    return None


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "?"
