"""Runs a command to its end and returns what it printed, or raises an error that carries it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.errors import CommandFailed, MissingProgram

TAIL_LINES = 30


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout_s: float | None = None,
) -> str:
    """Return the command's standard output; its standard error appears only in the error of a failed one."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words, env=env, cwd=cwd, input=stdin or "", timeout=timeout_s, capture_output=True, text=True
        )
    except FileNotFoundError as exc:
        raise MissingProgram(words[0], "install it and run the command again") from exc
    except subprocess.TimeoutExpired as exc:
        raise CommandFailed(words, 124, f"no end after {timeout_s:g} s") from exc
    if done.returncode != 0:
        raise CommandFailed(words, done.returncode, tail(done.stdout + done.stderr))
    return done.stdout


def run_logged(argv: Sequence[str | Path], log: Path, *, env: Mapping[str, str], cwd: Path | None = None) -> None:
    """Run a long command with its output in `log`; the error of a failed one carries the log's last lines."""
    words = [str(word) for word in argv]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        try:
            status = subprocess.run(
                words, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            ).returncode
        except FileNotFoundError as exc:
            raise MissingProgram(words[0], "install it and run the command again") from exc
    if status != 0:
        raise CommandFailed(words, status, tail(log.read_text(errors="replace")))


def tail(text: str) -> str:
    return "\n".join(text.splitlines()[-TAIL_LINES:])
