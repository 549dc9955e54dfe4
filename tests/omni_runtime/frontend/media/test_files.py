"""Local files: below the folders that are set up, and nowhere else."""

import os
from pathlib import Path

import pytest

from omni_runtime.frontend.media.fetching import TooManyBytesError
from omni_runtime.frontend.media.files import read_file
from omni_runtime.frontend.media.sources import RefusedSourceError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files and with every way out of it."""
    folder = tmp_path / "media"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "fox.png").write_bytes(b"fox")
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "media-of-others").mkdir()
    (tmp_path / "media-of-others" / "file").write_bytes(b"theirs")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "inside").symlink_to(folder / "sub" / "fox.png")
    os.mkfifo(folder / "pipe")
    return folder


@pytest.mark.parametrize("name", ["sub/fox.png", "sub/../sub/fox.png", "inside"])
def test_a_file_below_the_folder_is_read(folder: Path, name: str) -> None:
    assert read_file(folder / name, [folder], 3) == b"fox"


@pytest.mark.case("runtime:Q5")
@pytest.mark.parametrize(
    "name", ["../secret", "sub/../../secret", "link", "../media-of-others/file", "pipe", "sub", "missing", "a\0b"]
)
def test_every_way_out_of_the_folder_ends_in_the_same_refusal(folder: Path, name: str) -> None:
    with pytest.raises(RefusedSourceError, match="--media-folder"):
        read_file(folder / name, [folder], 1000)


def test_without_folders_no_file_is_read(folder: Path) -> None:
    with pytest.raises(RefusedSourceError):
        read_file(folder / "sub" / "fox.png", [], 1000)


def test_a_file_over_the_limit_is_refused(folder: Path) -> None:
    with pytest.raises(TooManyBytesError):
        read_file(folder / "sub" / "fox.png", [folder], 2)
