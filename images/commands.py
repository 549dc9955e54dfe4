"""Runs a program quietly; its output is shown only when it fails."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from images.errors import CommandFailed, ProgramMissing


def run(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> str:
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
        )
    except FileNotFoundError as problem:
        raise ProgramMissing(words[0]) from problem
    if done.returncode != 0:
        raise CommandFailed(words, done.returncode, done.stdout)
    return done.stdout
