"""Which workers a name means."""

from pathlib import Path

import pytest

from omni_runtime.administration.targets import Target, UnknownTargetError, targets


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """One served model: a denoiser of two replicas and a decoder."""
    folder = tmp_path / "abcd1234"
    folder.mkdir()
    for name in ("denoiser-0.sock", "denoiser-1.sock", "vae-decoder-0.sock", "denoiser.json"):
        (folder / name).touch()
    return tmp_path


def names(root: Path, *asked: str) -> list[str]:
    return [target.name for target in targets(asked, root)]


def test_a_stage_means_all_of_its_replicas(root: Path) -> None:
    assert names(root, "denoiser") == ["denoiser-0", "denoiser-1"]
    assert names(root, "vae-decoder", "denoiser-1") == ["vae-decoder-0", "denoiser-1"]


def test_no_name_means_everything_that_runs_here(root: Path) -> None:
    assert names(root) == ["denoiser-0", "denoiser-1", "vae-decoder-0"]


def test_a_worker_here_is_reached_by_its_socket(root: Path) -> None:
    assert targets(["denoiser-1"], root)[0].address == f"unix:{root}/abcd1234/denoiser-1.sock"


@pytest.mark.parametrize("address", ["127.0.0.1:50051", "unix:/run/denoiser.sock", "[::1]:50051"])
def test_what_has_a_colon_is_an_address(root: Path, address: str) -> None:
    assert targets([address], root) == [Target(address, address)]


def test_a_name_that_nobody_has_is_told_with_those_there_are(root: Path) -> None:
    with pytest.raises(UnknownTargetError, match=r'no stage "vae" .* there is denoiser-0, denoiser-1, vae-decoder-0'):
        targets(["vae"], root)


def test_without_any_model_here_the_way_out_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownTargetError, match="name a stage's address"):
        targets([], tmp_path)
