"""`make serve`: the tiny text-to-image model as local processes, from nothing to a saved picture. Stays up."""

import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from omni_contract.cli import main as omni

FAMILY = "qwen-image"
EXAMPLE = Path("examples/tiny-qwen-image.yaml")
PICTURE = Path("out/first-picture.png")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m omni_runtime.local.tiny_demo", description=__doc__)
    parser.add_argument("--models", type=Path, required=True, help="folder for the checkpoint; made if it is absent")
    parser.add_argument("--port", default="8000")
    options = parser.parse_args(arguments)
    make_checkpoint(options.models / FAMILY)
    PICTURE.parent.mkdir(exist_ok=True)
    volume = ("--volume", f"models={options.models}")
    return omni(["serve", str(EXAMPLE), *volume, "--port", options.port, "--picture", str(PICTURE)])


def make_checkpoint(folder: Path, family: str = FAMILY) -> None:
    """Write the checkpoint unless it is there. In a process of its own: the supervisor needs no torch."""
    if folder.is_dir():
        return
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([Path(sys.executable).with_name("omni"), "tiny", family, unfinished], check=True)
    unfinished.rename(folder)


if __name__ == "__main__":
    sys.exit(main())
