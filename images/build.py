"""Builds images into OCI archives in the cache. What did not change is not built again; a change of our code adds one
thin layer to what is there, so it takes seconds."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from images import base, content, environment, metadata, programs
from images.buildah import Buildah
from images.recipes import PREFIX, RECIPES, REPOSITORY, Recipe
from images.steps import line, step

ENVIRONMENT_CONTAINERFILE = REPOSITORY / "images" / "environment-layer" / "Containerfile"
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
        return [_ensure(RECIPES[name], cache, bake or not RECIPES[name].mounts_environment) for name in names]


def _ensure(recipe: Recipe, cache: Path, baked: bool) -> Image:
    image = identify(recipe, cache, baked)
    if image.archive.exists():
        image.archive.touch()
        line(f"{recipe.name}: nothing changed ({image.archive.name})")
        return image
    programs.ensure()
    buildah = Buildah(cache / "store")
    below = _ensure_environment(recipe, buildah, cache) if baked else _ensure_base(buildah, cache)
    with step(f"{recipe.name}: our code"), _code(recipe) as code:
        buildah.build(image.reference, recipe.containerfile, code, below)
    with step(f"{recipe.name}: {image.archive.name}"):
        buildah.save(image.reference, image.archive)
        buildah.remove(image.reference)
    prune(image)
    return image


def identify(recipe: Recipe, cache: Path, baked: bool) -> Image:
    """Name the image by everything that goes into it."""
    tag = content.of_text(
        base.key(),
        environment.key(recipe) if baked else "mounted",
        ENVIRONMENT_CONTAINERFILE.read_text(),
        recipe.containerfile.read_text(),
        content.of_files(recipe.sources),
        metadata.text(),
    )
    return Image(recipe.name, f"{PREFIX}/{recipe.name}:{tag}", cache / f"{recipe.name}-{tag}.tar")


def _ensure_environment(recipe: Recipe, buildah: Buildah, cache: Path) -> str:
    reference = f"{PREFIX}/{recipe.name}-environment:{base.key()}-{environment.key(recipe)}"
    if not buildah.has(reference):
        packages = environment.ensure(recipe, cache)
        below = _ensure_base(buildah, cache)
        with step(f"{recipe.name}: layer of packages"):
            buildah.build(reference, ENVIRONMENT_CONTAINERFILE, packages, below)
        buildah.remove_others(reference)
    return reference


def _ensure_base(buildah: Buildah, cache: Path) -> str:
    reference = f"{PREFIX}/base:{base.key()}"
    if not buildah.has(reference):
        tree = base.ensure_tree(cache)
        with step("base: image"):
            buildah.build(reference, base.CONTAINERFILE, tree)
    return reference


@contextmanager
def _code(recipe: Recipe) -> Iterator[Path]:
    """A folder with copies of our packages, byte-compiled."""
    with tempfile.TemporaryDirectory(prefix="omni-image-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # it becomes a folder of the image, which another user reads
        for source in recipe.sources:
            shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        metadata.write(folder)
        environment.byte_compile(folder, "/opt/omni")
        yield folder


def prune(image: Image) -> None:
    """Keep the newest archives of the image: the last one may still be wanted by a running cluster."""
    archives = sorted(image.archive.parent.glob(f"{image.name}-*.tar"), key=lambda path: path.stat().st_mtime)
    for old in archives[:-KEPT_ARCHIVES]:
        old.unlink()


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """Two builds at once would write the same store."""
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
