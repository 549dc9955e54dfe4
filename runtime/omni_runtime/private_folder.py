"""Folders of one process each, for sockets and files that go with it, below a root that only its user may enter.

A folder lives as long as its lock is held. Whoever makes the next one removes those whose lock nobody holds, so a
process that was killed leaves nothing for good. Process ids would not do: they are the same in every container.
"""

import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = "lock"


class OpenToOthersError(Exception):
    def __init__(self, root: Path) -> None:
        super().__init__(f"{root} must be a directory that only you may enter; remove it")


class PrivateFolder:
    """A fresh one. It goes when it is closed or nobody refers to it any more, or when the process ends.

    Raises OpenToOthersError unless the root is this user's alone; it is made if it is not there.
    """

    def __init__(self, root: Path) -> None:
        _make_private(root)
        with _locked(root / LOCK):
            _sweep(root)
            self.path = Path(tempfile.mkdtemp(dir=root, prefix=""))
            lock = _take(self.path / LOCK)
        self._end = weakref.finalize(self, _remove, self.path, lock)

    def close(self) -> None:
        self._end()


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def _make_private(root: Path) -> None:
    root.mkdir(mode=0o700, exist_ok=True)
    facts = root.lstat()
    if root.is_symlink() or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise OpenToOthersError(root)


def _sweep(root: Path) -> None:
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
