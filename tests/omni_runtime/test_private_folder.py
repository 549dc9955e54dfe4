"""A folder of a process, which goes with it however it ends."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from omni_runtime.private_folder import LOCK, OpenToOthersError, PrivateFolder

KILLED = """
import os, signal, sys
from pathlib import Path
from omni_runtime.private_folder import PrivateFolder
folder = PrivateFolder(Path(sys.argv[1]))
(folder.path / "socket").touch()
print(folder.path, flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def folder_of_another(root: Path, end: str) -> Path:
    """Whose process has ended."""
    ended = subprocess.run([sys.executable, "-c", KILLED, root, end], stdout=subprocess.PIPE, text=True)
    return Path(ended.stdout.strip())


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def folders(root: Path) -> set[Path]:
    return {path for path in root.iterdir() if path.is_dir()}


def test_only_the_user_may_enter_and_nothing_remains(tmp_path: Path) -> None:
    root = tmp_path / "omni"
    with closing(PrivateFolder(root)) as folder:
        assert folder.path.parent == root
        assert (folder.path.stat().st_mode & 0o777, root.stat().st_mode & 0o777) == (0o700, 0o700)
        (folder.path / "stage.json").write_text("{}")
    assert folders(root) == set()


def test_two_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    first, second = PrivateFolder(tmp_path / "omni"), PrivateFolder(tmp_path / "omni")
    assert folders(tmp_path / "omni") == {first.path, second.path}
    assert first.path != second.path


@pytest.mark.case("runtime:M3")
def test_the_next_one_removes_what_a_killed_process_left_and_nothing_else(tmp_path: Path) -> None:
    alive = PrivateFolder(tmp_path)
    left = folder_of_another(tmp_path, "killed")
    assert (left / "socket").exists()
    fresh = PrivateFolder(tmp_path)
    assert folders(tmp_path) == {alive.path, fresh.path}


def test_one_that_died_before_it_held_its_lock_leaves_nothing_either(tmp_path: Path) -> None:
    (tmp_path / "unlocked").mkdir()
    fresh = PrivateFolder(tmp_path)
    assert folders(tmp_path) == {fresh.path}


def test_a_process_that_ends_by_itself_takes_its_folder_along(tmp_path: Path) -> None:
    assert not folder_of_another(tmp_path, "by itself").exists()


def test_one_that_nobody_refers_to_any_more_is_gone(tmp_path: Path) -> None:
    path = PrivateFolder(tmp_path).path
    assert not path.exists()


def test_a_root_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(OpenToOthersError, match=f"{tmp_path} must be a directory that only you may enter"):
        PrivateFolder(tmp_path)


def test_a_link_in_the_place_of_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "omni").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OpenToOthersError):
        PrivateFolder(tmp_path / "omni")


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = open_descriptors()
    PrivateFolder(tmp_path).close()
    assert open_descriptors() == before
    assert (tmp_path / LOCK).exists()
