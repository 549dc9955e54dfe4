"""`omni validate FILE`: every problem of a model file at once, with its line and the way out."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from omni_contract.api.load import load_model
from omni_contract.cli.command import Command


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the model file")


def _run(arguments: Namespace) -> int:
    model = load_model(arguments.file)
    print(f"{model.metadata.name}: valid")
    return 0


command = Command("validate", "Check a model file: all problems at once, with line numbers.", _configure, _run)
