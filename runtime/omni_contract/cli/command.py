"""What a subcommand of `omni` is. Each package offers its own by the entry-point group "omni.commands"."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """`run` gets the parsed arguments and returns the exit status; it prints what the user reads."""

    name: str
    help: str
    configure: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
