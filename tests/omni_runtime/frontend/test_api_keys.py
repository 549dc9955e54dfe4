"""Keys from a folder that changes."""

import os
from pathlib import Path

from omni_runtime.frontend.api_keys import ApiKeys


def mount(folder: Path, version: str, files: dict[str, str]) -> None:
    """As the kubelet does it: files are links into `..data`, which is swapped as a whole."""
    data = folder / f"..{version}"
    data.mkdir()
    for name, text in files.items():
        (data / name).write_text(text)
    link = folder / "..new"
    link.symlink_to(data.name)
    link.rename(folder / "..data")
    for name in files:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")


def test_every_line_of_every_file_is_a_key(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("key-1\n\n  key-2  \n")
    (tmp_path / "two").write_text("key-3")
    keys = ApiKeys(tmp_path)
    assert all(keys.tenant(key) for key in ("key-1", "key-2", "key-3"))
    assert [keys.tenant(key) for key in ("", "key", "key-1\n", "KEY-1")] == [None] * 4


def test_tenants_are_told_apart_by_names_that_hold_nothing_of_the_key(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("key-1\nkey-2")
    tenants = {ApiKeys(tmp_path).tenant(key) for key in ("key-1", "key-2")}
    assert len(tenants) == 2
    assert not any(tenant is None or "key" in tenant for tenant in tenants)


def test_a_swapped_secret_counts_at_the_next_request(tmp_path: Path) -> None:
    mount(tmp_path, "v1", {"team": "old"})
    keys = ApiKeys(tmp_path)
    assert keys.tenant("old")
    mount(tmp_path, "v2", {"team": "new"})
    assert keys.tenant("old") is None and keys.tenant("new")


def test_a_key_of_the_same_length_written_in_place_counts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "team"
    file.write_text("key-1")
    keys = ApiKeys(tmp_path)
    assert keys.tenant("key-1")
    file.write_text("key-2")
    os.utime(file, ns=(1, 1))
    assert keys.tenant("key-1") is None and keys.tenant("key-2")


def test_an_empty_or_missing_folder_lets_nobody_in(tmp_path: Path) -> None:
    assert not ApiKeys(tmp_path).tenant("")
    assert not ApiKeys(tmp_path / "missing").tenant("key")


def test_files_of_the_kubelet_hold_no_keys(tmp_path: Path) -> None:
    (tmp_path / ".hidden").write_text("secret")
    assert not ApiKeys(tmp_path).tenant("secret")


def test_a_key_need_not_be_ascii(tmp_path: Path) -> None:
    (tmp_path / "team").write_text("schlüssel")
    assert ApiKeys(tmp_path).tenant("schlüssel")
