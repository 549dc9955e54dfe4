"""Who uses what, told by kernel locks: they end with their process, however it ends, and know no process ids.

A whole-file lock (flock) is the owner's lease on its arena. A lock on the first byte of a block is a reader's lease on
that block; it belongs to the open file, so a process has one for all its readers of the block.
"""

import fcntl
import struct

LOCK = struct.Struct("hhqqi4x")
"""struct flock of 64-bit Linux: type, whence, start, length, process (0 for locks of open files)."""


def take_ownership(descriptor: int) -> bool:
    """Whether the file has no live owner but us now."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def give_up_ownership(descriptor: int) -> None:
    """Closing the descriptor is not enough: a mapping that is still in use keeps the file open."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def has_owner(descriptor: int) -> bool:
    """Whether another open file holds the owner's lease."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def begin_reading(descriptor: int, offset: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, LOCK.pack(fcntl.F_RDLCK, 0, offset, 1, 0))


def end_reading(descriptor: int, offset: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, LOCK.pack(fcntl.F_UNLCK, 0, offset, 1, 0))


def has_reader(descriptor: int, offset: int) -> bool:
    """Whether another open file holds a lease on the block."""
    found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, LOCK.pack(fcntl.F_WRLCK, 0, offset, 1, 0))
    return bool(LOCK.unpack(found)[0] != fcntl.F_UNLCK)
