"""`omni validate FILE`: every problem of a model file at once, with its line and the way out."""

import json
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path

from omni_contract.api.load import Finding, LoadedModel, Reading, read_models
from omni_contract.cli.command import Command
from omni_contract.resolve import spec_problems


@dataclass(frozen=True)
class Verdict:
    """What is to be said about one file."""

    file: str
    models: tuple[str, ...]
    skipped: tuple[str, ...]
    findings: tuple[Finding, ...]


def verdict(file: str, content: bytes) -> Verdict:
    """Everything that can be known without a cluster; which pools there are is not."""
    reading = read_models(content)
    findings = sorted([*reading.findings, *(found for model in reading.models for found in _of_spec(model))])
    return Verdict(file, _names(reading), reading.skipped, tuple(findings))


def as_text(said: Verdict) -> str:
    """For people and editors: FILE:LINE:COLUMN: PATH: MESSAGE."""
    lines = [f"{said.file}:{found.position.line}:{found.position.column}: {found}" for found in said.findings]
    lines += [f"{said.file}: {name} is valid" for name in said.models if not said.findings]
    lines += [f"{said.file}: {name} skipped, it is no OmniModel" for name in said.skipped]
    return "\n".join(lines)


def as_json(said: Verdict) -> str:
    """For programs; a stable form."""
    findings = [
        {"line": found.position.line, "column": found.position.column, "path": found.path, "message": found.message}
        for found in said.findings
    ]
    document = {"file": said.file, "valid": not findings, "models": said.models, "skipped": said.skipped}
    return json.dumps(document | {"problems": findings}, indent=2, ensure_ascii=False)


def _of_spec(loaded: LoadedModel) -> list[Finding]:
    return loaded.findings(spec_problems(loaded.model.spec))


def _names(reading: Reading) -> tuple[str, ...]:
    return tuple(loaded.model.metadata.name for loaded in reading.models)


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the model file; - reads from standard input")
    parser.add_argument("--output", choices=("text", "json"), default="text", help="how to print (default: text)")


def _run(arguments: Namespace) -> int:
    from_input = str(arguments.file) == "-"
    try:
        content = sys.stdin.buffer.read() if from_input else arguments.file.read_bytes()
    except OSError as error:
        print(f"{arguments.file}: {error.strerror}", file=sys.stderr)
        return 2
    said = verdict("<stdin>" if from_input else str(arguments.file), content)
    print(as_json(said) if arguments.output == "json" else as_text(said))
    return 1 if said.findings else 0


command = Command("validate", "check a model file: all problems at once, with line numbers", _configure, _run)
