"""The private directory of one `omni serve`: stage files, sockets, links to volumes.

It lives as long as its lock is held. Whoever starts next removes directories whose lock nobody holds, so a supervisor
that was killed leaves nothing for good.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omni_runtime.local.errors import InputError

LOCK = "lock"
SOCKET_PATH_BYTES = 107
"""The kernel's limit on the path of a unix socket."""
LONGEST_SOCKET_NAME = len("/12345678/123456789012345-999.sock.pipe")


def runtime_root(xdg_runtime_dir: str | None, uid: int) -> Path:
    """Below the user's runtime directory; below the temporary one if sockets could not be made there."""
    if xdg_runtime_dir and os.access(xdg_runtime_dir, os.W_OK) and sockets_fit(root := Path(xdg_runtime_dir, "omni")):
        return root
    root = Path(tempfile.gettempdir(), f"omni-{uid}")
    return root if sockets_fit(root) else Path("/tmp", root.name)


def sockets_fit(root: Path) -> bool:
    return len(os.fsencode(root)) + LONGEST_SOCKET_NAME <= SOCKET_PATH_BYTES


@contextmanager
def runtime_directory(root: Path) -> Iterator[Path]:
    """A fresh directory that only this user may enter; gone when the block ends."""
    _make_private(root)
    with _locked(root / LOCK):
        _sweep(root)
        path = Path(tempfile.mkdtemp(dir=root, prefix=""))
        lock = _take(path / LOCK)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _make_private(root: Path) -> None:
    root.mkdir(mode=0o700, exist_ok=True)
    facts = root.lstat()
    if root.is_symlink() or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise InputError(f"{root} must be a directory that only you may enter; remove it or set XDG_RUNTIME_DIR")


def _sweep(root: Path) -> None:
    """Remove what a killed supervisor left: directories whose lock is free."""
    for path in root.iterdir():
        if path.is_dir() and not path.is_symlink() and _is_abandoned(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(path: Path) -> bool:
    try:
        os.close(_take(path / LOCK))
    except BlockingIOError:
        return False
    return True


def _take(path: Path, wait: bool = False) -> int:
    """A descriptor that holds the lock; the kernel frees it when this process ends, however it ends."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = _take(path, wait=True)
    try:
        yield
    finally:
        os.close(descriptor)
