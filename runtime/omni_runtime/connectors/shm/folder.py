"""Arena files in a folder of a file system in memory: made so that no half-made one is ever seen, swept when ownerless.

A file of its name exists only with its owner's lease on it. Whoever starts next removes those whose lease nobody holds,
so a process that was killed leaves nothing for good.
"""

import os
import re
import secrets
import stat
from pathlib import Path

from omni_runtime.connectors.shm.lease import take_ownership

NAME = re.compile(r"omni-arena-[0-9a-f]{32}")
IN_MEMORY = "tmpfs"


class ArenaError(Exception):
    """No arena can be made; the message says why and what to do."""


def create(folder: Path, size_bytes: int, reserved_bytes: int) -> tuple[str, int]:
    """Name and descriptor of a new file whose lease is ours and whose first bytes have their memory."""
    _check_in_memory(folder)
    descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(descriptor, size_bytes)
        # Before anybody touches it, because memory that is missing then would end the process by SIGBUS.
        os.posix_fallocate(descriptor, 0, reserved_bytes)
        take_ownership(descriptor)
        name = f"omni-arena-{secrets.token_hex(16)}"
        _link(descriptor, folder, name)
    except OSError as error:
        os.close(descriptor)
        free_bytes = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        raise ArenaError(
            f"{folder} gives no {reserved_bytes:,} bytes of memory ({error.strerror}; {free_bytes:,} are free)"
        ) from error
    return name, descriptor


def _link(descriptor: int, folder: Path, name: str) -> None:
    # With a descriptor of the folder, because Python follows the link in /proc only then.
    parent = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=parent, follow_symlinks=True)
    finally:
        os.close(parent)


def open_existing(folder: Path, name: str) -> int:
    """A descriptor to read an arena of another process; raises OSError if it is not here."""
    if NAME.fullmatch(name) is None:
        raise FileNotFoundError(f'"{name}" is no name of an arena')
    # Read-locks on blocks need no more than this.
    return os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def sweep(folder: Path) -> list[str]:
    """Removes the arenas of dead owners; their names."""
    if not folder.is_dir():
        return []
    return [path.name for path in folder.iterdir() if NAME.fullmatch(path.name) and _removed(path)]


def _removed(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        # Gone meanwhile, or another user's.
        return False
    try:
        facts = os.fstat(descriptor)
        if facts.st_uid != os.geteuid() or not stat.S_ISREG(facts.st_mode) or not take_ownership(descriptor):
            return False
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(descriptor)


def _check_in_memory(folder: Path) -> None:
    if not folder.is_dir():
        raise ArenaError(f"{folder} does not exist; mount a file system in memory there or name another folder")
    kind = file_system(folder.resolve(), Path("/proc/self/mounts").read_text())
    if kind != IN_MEMORY:
        raise ArenaError(f"{folder} is not in memory but on {kind}; name a folder of a tmpfs")


def file_system(folder: Path, mounts: str) -> str:
    """The type of the file system that the folder is on, by the kernel's table of mounts."""
    found = [(Path(line.split(" ")[1]), line.split(" ")[2]) for line in mounts.splitlines()]
    above = [(point, kind) for point, kind in found if folder.is_relative_to(point)]
    return max(reversed(above), key=lambda entry: len(entry[0].parts))[1]
