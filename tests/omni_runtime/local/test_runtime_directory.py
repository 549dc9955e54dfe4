from pathlib import Path

import pytest

from omni_runtime.local.errors import InputError
from omni_runtime.local.runtime_directory import LOCK, runtime_directory, runtime_root


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def directories(root: Path) -> set[Path]:
    return {path for path in root.iterdir() if path.is_dir()}


def test_only_the_user_may_enter_and_nothing_remains(tmp_path: Path) -> None:
    root = tmp_path / "omni"
    with runtime_directory(root) as path:
        assert path.parent == root
        assert (path.stat().st_mode & 0o777, root.stat().st_mode & 0o777) == (0o700, 0o700)
        (path / "stage.json").write_text("{}")
    assert directories(root) == set()


def test_two_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    with runtime_directory(tmp_path / "omni") as first, runtime_directory(tmp_path / "omni") as second:
        assert first.is_dir()
        assert second.is_dir()
        assert first != second


@pytest.mark.case("runtime:M3")
def test_the_next_start_removes_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "omni"
    with runtime_directory(root) as alive:
        abandoned = root / "abandoned"
        abandoned.mkdir()
        (abandoned / LOCK).touch()
        (abandoned / "denoiser-0.sock").touch()
        with runtime_directory(root) as fresh:
            assert directories(root) == {alive, fresh}


def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "omni"
    root.mkdir()
    root.chmod(0o755)
    with pytest.raises(InputError, match="only you may enter"), runtime_directory(root):
        pass


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "omni").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="only you may enter"), runtime_directory(tmp_path / "omni"):
        pass


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = open_descriptors()
    with runtime_directory(tmp_path / "omni"):
        pass
    assert open_descriptors() == before


def test_the_users_runtime_directory_is_used_if_sockets_fit_in_it(tmp_path: Path) -> None:
    assert runtime_root(str(tmp_path), 7) == tmp_path / "omni"
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    assert runtime_root(str(deep), 7).name == "omni-7"
    assert runtime_root(None, 7).name == "omni-7"
    assert runtime_root(str(tmp_path / "absent"), 7).name == "omni-7"
