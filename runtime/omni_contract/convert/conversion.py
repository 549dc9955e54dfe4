"""An old stage file in, the text of a model file out, or all that stands against it. Pure, for `omni convert`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from omni_contract.api.load import Finding, read_models
from omni_contract.api.problems import Path, Problem, dotted
from omni_contract.api.rules.of_model import MAX_NAME
from omni_contract.api.yaml_file import Document, Position, YamlError, documents
from omni_contract.convert.old_file import OldFile, old_file
from omni_contract.convert.sieve import Refused, Sieve
from omni_contract.convert.spec import Spec, Unsaid, new_spec
from omni_contract.convert.writer import written
from omni_contract.presets import PRESETS, Preset
from omni_contract.resolve import spec_problems
from omni_contract.wire.names import API_VERSION, KIND

START = Position(1, 1)


@dataclass(frozen=True)
class Choices:
    """What an old file cannot say."""

    file: str
    """As the user knows it."""
    name: str | None = None
    source: str | None = None
    pool: str | None = None
    skip_refused: bool = False
    """Whether what is refused is left out, with a comment, instead of standing against the whole."""
    presets: Mapping[str, Preset] = field(default_factory=lambda: PRESETS)
    """Families that can be named; others become a comment."""


@dataclass(frozen=True)
class Conversion:
    """Either a text or findings; `notes` are what the user should hear besides."""

    text: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


def convert(content: bytes, choices: Choices) -> Conversion:
    """All problems at once, each with its place in the old file."""
    try:
        found = documents(content.decode())
    except YamlError as error:
        return Conversion("", (Finding(error.position, "", error.message),))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return Conversion("", (Finding(Position(line, 1), "", "the file is not UTF-8 text"),))
    if told := _no_stage_file(found):
        return Conversion("", (Finding(START, "", told),))
    (document,) = found
    sieve = Sieve()
    old = old_file(document.data, sieve)
    preset = choices.presets.get(old.family) if old.family else None
    unsaid = Unsaid(choices.source or f"pvc://models/{model_name(choices)}", choices.pool, preset)
    spec = new_spec(old, unsaid, sieve)
    against = [
        *document.problems,
        *sieve.problems,
        *(() if choices.skip_refused else [refused.problem for refused in sieve.refused]),
    ]
    if against:
        return Conversion("", _located(against, document))
    return _checked(_text(spec, old, choices, sieve.refused), spec, document, choices)


def model_name(choices: Choices) -> str:
    """The one asked for, else the old file's."""
    if choices.name is not None:
        return choices.name
    stem = _file_name(choices).partition(".y")[0]
    name = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:MAX_NAME].strip("-")
    return name if name[:1].isalpha() else f"model-{name}"[:MAX_NAME].strip("-")


def _file_name(choices: Choices) -> str:
    return choices.file.rpartition("/")[2]


def _no_stage_file(found: Sequence[Document]) -> str:
    if len(found) != 1:
        return f"the file holds {len(found)} documents; a stage configuration file is one"
    data = found[0].data
    if isinstance(data, dict) and data.get("kind") == KIND:
        return f"the file is an {KIND} already; omni validate checks it"
    if not isinstance(data, dict) or not {"stage_args", "runtime", "async_chunk"} & data.keys():
        return "the file is no stage configuration file of vLLM-Omni: it has no stage_args"
    return ""


def _text(spec: Spec, old: OldFile, choices: Choices, refused: Iterable[Refused]) -> str:
    notes: dict[Path, list[str]] = {(): [f"Made by omni convert from {_file_name(choices)}."]}
    for path, told in spec.notes:
        notes.setdefault(path, []).append(told)
    for left in refused:
        place, before = _new_place(left.path, spec)
        notes.setdefault(place, []).append(f"left out: {dotted(left.path[len(before) :])} ({left.reason})")
    if choices.source is None:
        told = "Where the checkpoint is (omni convert --model): a PersistentVolumeClaim and a folder in it."
        notes[("spec", "model", "source")] = [told]
    data = dict(spec.data)
    if old.family:
        _name_family(old.family, data, notes, choices)
    head: dict[str, JsonValue] = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": model_name(choices)}}
    ordered: dict[str, JsonValue] = {key: data[key] for key in Spec.ORDER if key in data}
    return written({**head, "spec": ordered}, notes)


def _new_place(path: Path, spec: Spec) -> tuple[Path, Path]:
    """What the old path has become, and the part of it that is said by that; the whole file if nothing closer."""
    return next(((new, old) for new, old in spec.places.items() if path[: len(old)] == old), ((), ()))


def _name_family(family: str, data: dict[str, JsonValue], notes: dict[Path, list[str]], choices: Choices) -> None:
    if family in choices.presets:
        data["family"] = family
    else:
        notes.setdefault(("spec", "stages"), []).append(f"family: {family}  ({NO_PRESET})")


NO_PRESET = "this release has no preset of that name, and without one the stages cannot hand over to each other"


def _checked(text: str, spec: Spec, document: Document, choices: Choices) -> Conversion:
    """The result is read as omni validate would; what it says is told at the old stage's place."""
    reading = read_models(text.encode())
    problems = [(finding.path, finding.message) for finding in reading.findings]
    problems += [
        (dotted(problem.path), problem.message)
        for loaded in reading.models
        for problem in spec_problems(loaded.model.spec)
    ]
    findings = sorted(Finding(_place(path, spec, document), path, told) for path, told in problems)
    if findings:
        return Conversion("", tuple(dict.fromkeys(findings)))
    named = any(loaded.model.spec.family for loaded in reading.models)
    told = () if named or spec.family is None else (f"family {spec.family}: {NO_PRESET}",)
    return Conversion(text, (), told)


def _place(path: str, spec: Spec, document: Document) -> Position:
    old = next((before for new, before in spec.places.items() if path.startswith(dotted(new))), ())
    return document.position(old)


def _located(problems: Iterable[Problem], document: Document) -> tuple[Finding, ...]:
    found = {Finding(document.position(problem.path), dotted(problem.path), problem.message) for problem in problems}
    return tuple(sorted(found))
