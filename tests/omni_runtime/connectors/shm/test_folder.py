import os
import subprocess
import sys
from pathlib import Path

import pytest

from omni_runtime.connectors.shm import folder as files
from omni_runtime.connectors.shm.folder import ArenaError, file_system, sweep

PAGE = 4096

MAKE_AND_DIE = """
import os, sys
from pathlib import Path
from omni_runtime.connectors.shm import folder
folder.create(Path(sys.argv[1]), 4096, 4096)
os.kill(os.getpid(), 9)
"""

MOUNTS = """\
overlay / overlay rw 0 0
tmpfs /dev/shm tmpfs rw 0 0
/dev/vda /dev/shm/disk ext4 rw 0 0
tmpfs /mnt tmpfs rw 0 0
/dev/vdb /mnt xfs rw 0 0
"""


@pytest.mark.case("runtime:M2", "runtime:M3")
def test_the_arena_of_a_killed_process_is_swept(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", MAKE_AND_DIE, folder])
    (left,) = folder.iterdir()

    assert sweep(folder) == [left.name]

    assert list(folder.iterdir()) == []


@pytest.mark.case("runtime:M3")
def test_the_arena_of_a_live_process_is_never_swept(folder: Path) -> None:
    name, descriptor = files.create(folder, PAGE, PAGE)

    assert sweep(folder) == []
    assert (folder / name).stat().st_size == PAGE

    os.close(descriptor)
    assert sweep(folder) == [name]


def test_other_files_are_left_alone(folder: Path) -> None:
    others = {folder / "omni-arena-of-somebody", folder / "psm_1234"}
    for path in others:
        path.touch()
    (folder / f"omni-arena-{'a' * 32}").symlink_to(folder / "psm_1234")

    assert sweep(folder) == []

    assert others < set(folder.iterdir())


def test_an_arena_is_seen_only_once_its_memory_and_its_lease_are_there(folder: Path) -> None:
    with pytest.raises(
        ArenaError, match=rf"{folder} gives no .* bytes of memory \(No space left on device; .* are free"
    ):
        files.create(folder, 2**50, 2**50)

    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["../passwd", "omni-arena-1", f"omni-arena-{'a' * 32}/x", ""])
def test_only_arenas_are_opened(folder: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match="is no name of an arena"):
        files.open_existing(folder, name)


def test_a_folder_on_a_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArenaError, match=r"is not in memory but on .*; name a folder of a tmpfs"):
        files.create(tmp_path, PAGE, PAGE)


def test_a_folder_that_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(ArenaError, match="memory-volume does not exist"):
        files.create(folder / "memory-volume", PAGE, PAGE)
    assert sweep(folder / "memory-volume") == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/dev/shm", "tmpfs"),
        ("/dev/shm/disk/a", "ext4"),
        ("/dev/shmem", "overlay"),
        ("/mnt/x", "xfs"),
        ("/", "overlay"),
    ],
)
def test_the_innermost_and_last_mount_says_the_file_system(path: str, kind: str) -> None:
    assert file_system(Path(path), MOUNTS) == kind
