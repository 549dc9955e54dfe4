"""The tree that all images stand on: a small Debian, made by mmdebstrap from the machine's own package sources."""

from pathlib import Path

from images import content
from images.commands import run
from images.errors import ImageError
from images.recipes import PACKAGES, REPOSITORY, SUITE, USER_ID
from images.steps import step

SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
CONTAINERFILE = REPOSITORY / "images" / "base" / "Containerfile"
LEFT_OUT = ("man", "doc", "locale", "info")
# a name for the user (without one, getpass and so torch fail), and the places of what comes later
HOOK = f"""
echo "omni:x:{USER_ID}:{USER_ID}::/tmp:/usr/sbin/nologin" >> "$1/etc/passwd"
echo "omni:x:{USER_ID}:" >> "$1/etc/group"
mkdir "$1/opt/venv" "$1/opt/omni"
"""


def key() -> str:
    return content.of_text(SUITE, *PACKAGES, *LEFT_OUT, HOOK, CONTAINERFILE.read_text())


def ensure_tree(cache: Path) -> Path:
    """A folder with base.tar in it."""
    folder = cache / f"base-{key()}"
    tree = folder / "base.tar"
    if not tree.exists():
        with step(f"base: Debian {SUITE} with {len(PACKAGES)} packages"):
            _bootstrap(tree)
    return folder


def _bootstrap(tree: Path) -> None:
    tree.parent.mkdir(parents=True, exist_ok=True)
    partial = tree.with_name("partial.tar")
    options = ["--mode=root", "--variant=minbase", f"--include={','.join(PACKAGES)}", f"--customize-hook={HOOK}"]
    options += ['--aptopt=APT::Install-Recommends "false"']
    options += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in LEFT_OUT]
    run(["mmdebstrap", *options, SUITE, partial, _sources()])
    partial.rename(tree)


def _sources() -> Path:
    found = next((path for path in SOURCES if path.exists()), None)
    if found is None:
        raise ImageError(f"the base image is made from Debian's packages, but none of {SOURCES} exists here")
    return found
