"""`omni convert OLD.yaml`: an old stage configuration file of vLLM-Omni becomes a model file, or is told why not."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from omni_contract.api.yaml_file import MAX_BYTES
from omni_contract.cli.command import Command
from omni_contract.convert import Choices, convert


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the stage configuration file; - reads from standard input")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to write (default: standard output)")
    parser.add_argument("--force", action="store_true", help="write over FILE if it exists")
    parser.add_argument("--name", help="the model's name (default: the file's)")
    parser.add_argument("--model", metavar="SOURCE", help="where the checkpoint is: pvc://CLAIM/PATH")
    parser.add_argument("--pool", help="the accelerator pool of every stage")
    parser.add_argument(
        "--skip-refused", action="store_true", help="leave out what cannot be kept, with a comment that says why"
    )


def _run(arguments: Namespace) -> int:
    from_input = str(arguments.file) == "-"
    file = "<stdin>" if from_input else str(arguments.file)
    try:
        content = _standard_input() if from_input else _content(arguments.file)
    except OSError as error:
        print(f"{file}: {error.strerror}", file=sys.stderr)
        return 2
    choices = Choices(file, arguments.name, arguments.model, arguments.pool, arguments.skip_refused)
    made = convert(content, choices)
    for found in made.findings:
        print(f"{file}:{found.position.line}:{found.position.column}: {found}", file=sys.stderr)
    for note in made.notes:
        print(f"{file}: {note}", file=sys.stderr)
    return 1 if made.findings else _write(made.text, arguments.output, arguments.force)


def _content(path: Path) -> bytes:
    """One byte more than is read of any file, so that a larger one is refused without being read."""
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _standard_input() -> bytes:
    return sys.stdin.buffer.read(MAX_BYTES + 1)


def _write(text: str, path: Path | None, is_forced: bool) -> int:
    if path is None:
        print(text, end="")
        return 0
    try:
        with path.open("w" if is_forced else "x") as file:
            file.write(text)
    except FileExistsError:
        print(f"{path}: exists; choose another name, or write over it with --force", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{path}: {error.strerror}", file=sys.stderr)
        return 2
    print(f"{path}: written")
    return 0


command = Command("convert", "turn a stage configuration file of vLLM-Omni into a model file", _configure, _run)
