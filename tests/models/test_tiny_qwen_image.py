"""The tiny checkpoint: small, harmless, the same every time, readable by another user."""

import hashlib
import stat
from pathlib import Path

import torch
from safetensors.torch import load_file

from omni_runtime.families.registry import family


def build(folder: Path, seed: int) -> Path:
    family("qwen-image").build_tiny(folder, seed, lambda line: None)
    return folder


def hashes(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return {f"{file}/{name}": w for file in folder.rglob("*.safetensors") for name, w in load_file(file).items()}


def test_the_same_seed_writes_the_same_bytes_and_another_seed_does_not(tiny_model, tmp_path):
    again, other = build(tmp_path / "again", 0), build(tmp_path / "other", 1)
    assert hashes(again) == hashes(tiny_model)
    assert hashes(other) != hashes(tiny_model)


def test_building_leaves_torchs_random_state_alone(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    build(tmp_path / "model", 0)
    assert torch.equal(torch.rand(3), expected)


def test_it_has_less_than_five_million_finite_small_parameters(tiny_model):
    found = weights(tiny_model)
    assert 100_000 < sum(weight.numel() for weight in found.values()) < 5_000_000
    assert all(bool(weight.isfinite().all()) and weight.abs().max() <= 10 for weight in found.values())


def test_everybody_may_read_it(tiny_model):
    for path in (tiny_model, *tiny_model.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644)
