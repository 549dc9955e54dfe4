"""The Python environment of an image: a venv of hash-locked packages in the cache, made once for each lock."""

import shutil
from pathlib import Path

from images import content, programs
from images.commands import run
from images.errors import ForbiddenPackages
from images.recipes import Recipe
from images.steps import step

PYTHON = "/usr/bin/python3.11"
"""Debian's, as in the images: a venv refers to its interpreter by path."""


def ensure(recipe: Recipe, cache: Path) -> Path:
    folder = cache / f"environment-{recipe.name}-{key(recipe)}"
    if not folder.exists():
        with step(f"{recipe.name}: packages of requirements/{recipe.requirements}"):
            _make(recipe, folder, programs.uv(cache))
        _remove_others(folder, f"environment-{recipe.name}-*")
    return folder


def key(recipe: Recipe) -> str:
    return content.of_text(recipe.lock.read_text(), PYTHON, COMPILE, *recipe.forbidden)


def _remove_others(folder: Path, pattern: str) -> None:
    for other in folder.parent.glob(pattern):
        if other != folder:
            shutil.rmtree(other)


def _make(recipe: Recipe, folder: Path, uv: Path) -> None:
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    run([uv, "venv", "-q", "--python", PYTHON, partial])
    run([uv, "pip", "sync", "-q", "--require-hashes", recipe.lock], env={"VIRTUAL_ENV": str(partial)})
    refuse_forbidden(recipe, partial)
    byte_compile(partial, "/opt/venv")
    partial.rename(folder)


def refuse_forbidden(recipe: Recipe, environment: Path) -> None:
    """Raise ForbiddenPackages: an image that must start fast and stay small would carry torch."""
    found = [name for name in recipe.forbidden if any(environment.glob(f"lib/*/site-packages/{name}"))]
    if found:
        raise ForbiddenPackages(recipe.name, found)


def byte_compile(folder: Path, place: str) -> None:
    """Compile in advance, since nobody may write in the pod; `place` is where tracebacks shall find the sources.

    Unchecked, since copying changes modification times. Packages ship a few files for other Python versions, so that
    some do not compile is no failure.
    """
    run([PYTHON, "-c", COMPILE, folder, place])


COMPILE = """
import compileall, py_compile, sys
folder, place = sys.argv[1:]
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
compileall.compile_dir(folder, quiet=2, workers=2, stripdir=folder, prependdir=place, invalidation_mode=mode)
"""
