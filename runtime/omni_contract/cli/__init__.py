"""The `omni` command: finds its subcommands by entry point, so that each image carries only what it needs."""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

from omni_contract.cli.command import Command

GROUP = "omni.commands"
EXTRAS = {
    "omni_operator": "operator",
    "omni_runtime.frontend": "frontend",
    "omni_runtime.bench": "frontend",
    "omni_runtime.terminal_chat": "frontend",
    "omni_runtime": "runtime",
}
"""The extra that a command's module needs, longest prefix first."""


class MissingExtraError(Exception):
    """A subcommand's libraries are not installed."""

    def __init__(self, command: str, module: str, extra: str) -> None:
        super().__init__(
            f'"omni {command}" needs {module}, which is not installed; '
            f"install the extra that brings it: pip install 'omni-operator[{extra}]'"
        )
        self.extra = extra


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    offered = {entry.name: entry for entry in entry_points(group=GROUP)}
    if arguments and (entry := offered.get(arguments[0])):
        return _run(entry, arguments)
    _overview(offered).parse_args(arguments or ["--help"])
    return 2


def load(entry: EntryPoint) -> Command:
    """The entry's command; raises MissingExtraError if a library of it is absent."""
    try:
        command = entry.load()
    except ModuleNotFoundError as missing:
        extra = next((extra for prefix, extra in EXTRAS.items() if entry.module.startswith(prefix)), None)
        if extra is None or missing.name is None or missing.name.startswith("omni_"):
            raise
        raise MissingExtraError(entry.name, missing.name, extra) from missing
    if not isinstance(command, Command):
        raise TypeError(f"entry point {entry.value} is a {type(command).__name__}, not a Command")
    return command


def _run(entry: EntryPoint, arguments: Sequence[str]) -> int:
    try:
        command = load(entry)
    except MissingExtraError as error:
        print(error, file=sys.stderr)
        return 2
    parser = ArgumentParser(prog=f"omni {command.name}", description=command.help)
    command.configure(parser)
    return command.run(parser.parse_args(arguments[1:]))


def _overview(offered: dict[str, EntryPoint]) -> ArgumentParser:
    parser = ArgumentParser(prog="omni", description="Serve disaggregated omni-modality models.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, entry in sorted(offered.items()):
        commands.add_parser(name, help=_summary(entry), add_help=False)
    return parser


def _summary(entry: EntryPoint) -> str:
    try:
        return load(entry).help
    except MissingExtraError as error:
        return f"needs the extra {error.extra}"
