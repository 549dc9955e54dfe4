"""Reads model files, for `omni validate`, `omni render` and local mode, so that all refuse the same files."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path as FilePath

from pydantic import JsonValue

from omni_contract.api.nearest import nearest
from omni_contract.api.parse import parse
from omni_contract.api.problems import Problem, dotted
from omni_contract.api.v1alpha1.resource import OmniModel
from omni_contract.api.yaml_file import Document, Position, YamlError, documents
from omni_contract.wire.names import GROUP, KIND


@dataclass(frozen=True, order=True)
class Finding:
    """A problem and its place in the file."""

    position: Position
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True)
class LoadedModel:
    """A model and the document that it was read from."""

    model: OmniModel
    document: Document

    def findings(self, problems: Iterable[Problem]) -> list[Finding]:
        """Problems found later, at their place in the file."""
        return _located(problems, self.document)


@dataclass(frozen=True)
class Reading:
    """What a file holds: the models that are sound, and what is wrong with the others."""

    models: tuple[LoadedModel, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[str, ...]
    """Objects of other kinds, as "Secret/api-keys"."""


class InvalidFileError(ValueError):
    """The file cannot be used; `findings` has every reason."""

    def __init__(self, file: str, findings: Iterable[Finding]) -> None:
        self.file = file
        self.findings = tuple(findings)
        super().__init__(
            "\n".join(f"{file}:{found.position.line}:{found.position.column}: {found}" for found in self.findings)
        )


def load_model(path: FilePath) -> OmniModel:
    """The file's only OmniModel; raises InvalidFileError with every problem, or OSError."""
    return load_file(path).model


def load_file(path: FilePath) -> LoadedModel:
    """As `load_model`, with the places."""
    reading = read_models(path.read_bytes())
    if reading.findings:
        raise InvalidFileError(str(path), reading.findings)
    if len(reading.models) > 1:
        names = ", ".join(f'"{loaded.model.metadata.name}"' for loaded in reading.models)
        raise InvalidFileError(
            str(path),
            [Finding(Position(1, 1), "", f"the file holds several models, {names}, but one is wanted; split it")],
        )
    return reading.models[0]


def read_models(content: bytes) -> Reading:
    """Everything in a file, the good and the bad. A file without an OmniModel is a finding, too."""
    try:
        found = documents(content.decode())
    except YamlError as error:
        return Reading((), (Finding(error.position, "", error.message),), ())
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return Reading((), (Finding(Position(line, 1), "", "the file is not UTF-8 text"),), ())
    ours = [document for document in found if _is_ours(document.data)]
    skipped = tuple(_name(document.data) for document in found if not _is_ours(document.data))
    if not ours:
        beside = f"; it holds {', '.join(skipped)}" if skipped else ""
        return Reading((), (Finding(Position(1, 1), "", f"the file holds no {KIND}{beside}"),), skipped)
    models, findings = list[LoadedModel](), list[Finding]()
    for document in ours:
        model, problems = parse(document.data)
        findings += _located([*document.problems, *problems], document)
        if model is not None and not document.problems:
            models.append(LoadedModel(model, document))
    return Reading(tuple(models), tuple(findings), skipped)


def _is_ours(data: JsonValue) -> bool:
    """Whether the document is, or was meant as, an OmniModel."""
    if not isinstance(data, dict):
        return True
    kind, group = str(data.get("kind", "")), str(data.get("apiVersion", "")).partition("/")[0]
    return "kind" not in data or group == GROUP or nearest(kind, [KIND]) is not None


def _name(data: JsonValue) -> str:
    if not isinstance(data, dict):
        return "a document that is no object"
    metadata = data.get("metadata")
    name = metadata.get("name", "?") if isinstance(metadata, dict) else "?"
    return f"{data.get('kind')}/{name}"


def _located(problems: Iterable[Problem], document: Document) -> list[Finding]:
    """In the order of the file, nothing twice."""
    found = {Finding(document.position(problem.path), dotted(problem.path), problem.message) for problem in problems}
    return sorted(found)
