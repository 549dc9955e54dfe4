"""The private directory of one `omni serve`: stage files, sockets, links to volumes."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from omni_runtime.local.errors import InputError
from omni_runtime.private_folder import OpenToOthersError, PrivateFolder

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
    try:
        folder = PrivateFolder(root)
    except OpenToOthersError as error:
        raise InputError(f"{error} or set XDG_RUNTIME_DIR") from error
    with closing(folder):
        yield folder.path
