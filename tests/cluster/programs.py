"""Builds the Go programs once into the cache, keyed by what makes them, and says where each program is."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.commands import run, run_logged
from tests.cluster.errors import ClusterError, MissingProgram
from tests.cluster.packages import FOR_C, ensure_if_possible
from tests.cluster.recipes import KUBERNETES_VERSION_VARIABLES, Recipe
from tests.cluster.settings import Settings
from tests.cluster.steps import Steps


class Programs(Mapping[str, Path]):
    """Program name → absolute path, for the programs of some recipes that are in the cache."""

    def __init__(self, settings: Settings, recipes: Sequence[Recipe]) -> None:
        self._folders = {recipe.name: home(settings, recipe) for recipe in recipes}
        self._paths = {
            program: self._folders[recipe.name] / "bin" / program for recipe in recipes for program in recipe.programs
        }

    def __getitem__(self, name: str) -> Path:
        return self._paths[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def kept(self, recipe: str) -> Path:
        """The folder with the module files that the recipe keeps beside its programs."""
        return self._folders[recipe] / "kept"


def ensure(settings: Settings, recipes: Sequence[Recipe], steps: Steps) -> Programs:
    """Build what the cache lacks. Safe to call from several processes at once."""
    for recipe in recipes:
        if not home(settings, recipe).is_dir():
            if recipe.cgo:
                ensure_if_possible(settings, steps, FOR_C)
            with steps.step(f"build {recipe.name}: {' '.join(recipe.programs)}"):
                _build_once(settings, recipe)
    return Programs(settings, recipes)


def home(settings: Settings, recipe: Recipe) -> Path:
    return settings.programs / f"{recipe.name}-{key(recipe)}"


def key(recipe: Recipe) -> str:
    """A hash of the module files, our own sources and the recipe: another key, another folder in the cache."""
    digest = hashlib.sha256(repr(recipe).encode())
    for path in sorted(recipe.folder.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def module_version(go_mod: str, module: str) -> str:
    """The version that a go.mod requires of a module, such as v1.37.2."""
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise ClusterError(f"the go.mod requires no module {module!r}; add it with `go get -tool {module}@VERSION`")
    return found[1]


def version(recipe: Recipe) -> str:
    return module_version((recipe.folder / "go.mod").read_text(), recipe.version_of)


def linker_flags(recipe: Recipe) -> str:
    """No symbols, and for Kubernetes the version that its programs announce to each other."""
    flags = ["-s", "-w"]
    if recipe.version_of:
        release = version(recipe)
        major, minor, _ = release.removeprefix("v").split(".", 2)
        for name, value in (("gitVersion", release), ("gitMajor", major), ("gitMinor", minor)):
            flags += ["-X", f"{KUBERNETES_VERSION_VARIABLES}.{name}={value}"]
    return " ".join(flags)


def build_command(recipe: Recipe, target: Path) -> list[str]:
    command = ["go", "build", "-mod=readonly", "-buildvcs=false", "-trimpath", f"-ldflags={linker_flags(recipe)}"]
    if recipe.tags:
        command.append(f"-tags={recipe.tags}")
    return [*command, "-o", f"{target / recipe.output}" if recipe.output else f"{target}/", *recipe.packages]


def _build_once(settings: Settings, recipe: Recipe) -> None:
    if shutil.which("go") is None:
        raise MissingProgram("go", "install Go 1.26 or newer and put it on PATH")
    target = home(settings, recipe)
    with exclusive(settings.programs / f".lock-{recipe.source}"):
        if not target.is_dir():  # another process may have built it while this one waited
            _build(settings, recipe, target)


def _build(settings: Settings, recipe: Recipe, target: Path) -> None:
    """Build into a folder beside the target, then rename it: an interrupted build is never taken for a whole one."""
    unfinished = target.with_name(f".unfinished-{recipe.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / "bin").mkdir(parents=True)
    env = {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": str(int(recipe.cgo))}
    command = build_command(recipe, unfinished / "bin")
    run_logged(command, settings.logs / f"build-{recipe.name}.log", env=env, cwd=recipe.folder)
    if recipe.kept is not None:
        module = run(["go", "list", "-m", "-f", "{{.Dir}}", recipe.kept.module], env=env, cwd=recipe.folder)
        _keep(Path(module.strip()), recipe.kept.folders, unfinished / "kept")
    unfinished.rename(target)


def _keep(module: Path, folders: Sequence[str], target: Path) -> None:
    """Copy the folders' contents, not their modes: Go's module cache is read-only, the copy must be removable."""
    for folder in folders:
        for path in sorted((module / folder).rglob("*")):
            if path.is_file():
                copy = target / path.relative_to(module)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)


@contextmanager
def exclusive(lock: Path) -> Iterator[None]:
    """Hold a file lock, which the kernel lets go when the process ends however it ends."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
