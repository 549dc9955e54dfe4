"""Builds images into OCI archives in the cache. What did not change is not built again; a change of our code adds one
thin layer, so it takes seconds."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from images import base, content, environment
from images.buildah import Buildah
from images.recipes import PREFIX, RECIPES, Recipe
from images.steps import line, step

KEPT_ARCHIVES = 2


@dataclass(frozen=True)
class Image:
    name: str
    reference: str
    archive: Path


def build(names: Sequence[str], cache: Path, bake: bool = False) -> list[Image]:
    """The images of these names, built where needed. `bake` puts environments in that are mounted otherwise."""
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache):
        return [_ensure(RECIPES[name], cache, bake) for name in names]


def _ensure(recipe: Recipe, cache: Path, bake: bool) -> Image:
    baked = bake or not recipe.optional_environment
    tag = content.of_text(
        base.key(),
        recipe.containerfile.read_text(),
        environment.key(recipe) if baked else "mounted",
        content.of_files(recipe.sources),
    )
    image = Image(recipe.name, f"{PREFIX}/{recipe.name}:{tag}", cache / f"{recipe.name}-{tag}.tar")
    if image.archive.exists():
        line(f"{recipe.name}: nothing changed ({tag})")
    else:
        _make(recipe, image, cache, baked)
    return image


def _make(recipe: Recipe, image: Image, cache: Path, baked: bool) -> None:
    buildah = Buildah(cache / "store")
    base_reference = _ensure_base(buildah, cache)
    with _empty_folder() as empty, _code(recipe) as code:
        packages = environment.ensure(recipe, cache) if baked else empty
        with step(f"{recipe.name}: image"):
            contexts = {"environment": packages, "code": code}
            buildah.build(image.reference, recipe.containerfile, contexts, base_reference)
    with step(f"{recipe.name}: {image.archive.name}"):
        buildah.save(image.reference, image.archive)
    _prune(image)


def _ensure_base(buildah: Buildah, cache: Path) -> str:
    reference = f"{PREFIX}/base:{base.key()}"
    if not buildah.has(reference):
        tree = base.ensure_tree(cache)
        with step("base: image"):
            buildah.build(reference, base.CONTAINERFILE, {"": tree})
    return reference


@contextmanager
def _code(recipe: Recipe) -> Iterator[Path]:
    """A folder with copies of our packages, byte-compiled."""
    with _empty_folder() as folder:
        for source in recipe.sources:
            shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        environment.byte_compile(folder)
        yield folder


@contextmanager
def _empty_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="omni-image-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # it becomes a folder of the image, which another user reads
        yield folder


def _prune(image: Image) -> None:
    archives = sorted(image.archive.parent.glob(f"{image.name}-*.tar"), key=lambda path: path.stat().st_mtime)
    for old in archives[:-KEPT_ARCHIVES]:
        old.unlink()


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """Two builds at once would write the same store."""
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
