"""`python -m images build [NAME…] [--bake]`: build images, print where their archives are."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from images.build import build
from images.errors import ImageError
from images.recipes import RECIPES


def default_cache() -> Path:
    return Path(os.environ.get("OMNI_CACHE") or Path.home() / ".cache" / "omni-operator") / "images"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m images", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    command = commands.add_parser("build", help="build images into OCI archives")
    known = ", ".join(RECIPES)
    command.add_argument("names", nargs="*", type=_known, default=list(RECIPES), help=f"of {known}; default: all")
    command.add_argument(
        "--bake", action="store_true", help="put the runtime's packages in (5 GB) instead of mounting them"
    )
    return top


def _known(name: str) -> str:
    if name not in RECIPES:
        raise argparse.ArgumentTypeError(f'no image is called "{name}"; there are: {", ".join(RECIPES)}')
    return name


def main(words: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(words)
    try:
        images = build(arguments.names, default_cache(), arguments.bake)
    except ImageError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    for image in images:
        print(f"{image.reference}\n    {image.archive}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
