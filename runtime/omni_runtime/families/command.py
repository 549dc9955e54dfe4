"""`omni tiny FAMILY OUT`: a small random-weight checkpoint for trying a model file without any download."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from omni_contract.cli.command import Command
from omni_runtime.families.protocol import Family, VariedFamily
from omni_runtime.families.registry import FAMILIES, family
from omni_runtime.garbage import look_rarely


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("family", choices=FAMILIES.names(), help="the model family")
    parser.add_argument("out", type=Path, help="the folder to write, for example models/qwen-image")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same weights (default: %(default)s)")
    parser.add_argument("--variant", help="the kind of checkpoint, for families with several")
    parser.add_argument("--force", action="store_true", help="write over the files of a folder that is not empty")


def _run(arguments: Namespace) -> int:
    out: Path = arguments.out
    chosen = family(arguments.family)
    problem = _problem(out, arguments.force) or _wrong_variant(chosen, arguments)
    if problem is not None:
        print(problem, file=sys.stderr)
        return 2
    look_rarely()
    try:
        _build(chosen, arguments)
    except ModuleNotFoundError as missing:
        print(f"omni tiny needs {missing.name}; install it by: pip install 'omni-operator[runtime]'", file=sys.stderr)
        return 2
    print(f"{out}: a tiny {arguments.family} model")
    return 0


def _build(chosen: Family, arguments: Namespace) -> None:
    if isinstance(chosen, VariedFamily) and arguments.variant is not None:
        chosen.build_tiny_variant(arguments.variant, arguments.out, arguments.seed, print)
    else:
        chosen.build_tiny(arguments.out, arguments.seed, print)


def _problem(out: Path, is_forced: bool) -> str | None:
    if out.exists() and not out.is_dir():
        return f"{out} is a file; name a folder"
    if out.is_dir() and any(out.iterdir()) and not is_forced:
        return f"{out} is not empty; name another folder, or add --force to write over its files"
    return None


def _wrong_variant(chosen: Family, arguments: Namespace) -> str | None:
    variants = chosen.variants if isinstance(chosen, VariedFamily) else ()
    if arguments.variant is None or arguments.variant in variants:
        return None
    known = f"use one of {', '.join(variants)}" if variants else "its checkpoints are of one kind"
    return f'{arguments.family} has no variant "{arguments.variant}"; {known}'


command = Command("tiny", "write a tiny random-weight checkpoint of a family", _configure, _run)
