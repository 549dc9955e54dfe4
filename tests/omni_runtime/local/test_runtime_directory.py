from pathlib import Path

import pytest

from omni_runtime.local.errors import InputError
from omni_runtime.local.runtime_directory import runtime_directory, runtime_root


def test_it_is_there_in_the_block_alone(tmp_path: Path) -> None:
    with runtime_directory(tmp_path / "omni") as path:
        assert path.is_dir() and path.parent == tmp_path / "omni"
    assert not path.exists()


def test_a_folder_that_others_may_enter_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    root = tmp_path / "omni"
    root.mkdir()
    root.chmod(0o755)
    words = "only you may enter; remove it or set XDG_RUNTIME_DIR"
    with pytest.raises(InputError, match=words), runtime_directory(root):
        pass


def test_the_users_runtime_directory_is_used_if_sockets_fit_in_it(tmp_path: Path) -> None:
    assert runtime_root(str(tmp_path), 7) == tmp_path / "omni"
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    assert runtime_root(str(deep), 7).name == "omni-7"
    assert runtime_root(None, 7).name == "omni-7"
    assert runtime_root(str(tmp_path / "absent"), 7).name == "omni-7"
