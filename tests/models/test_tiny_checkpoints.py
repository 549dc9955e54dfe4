"""The tiny checkpoints: small, harmless, the same every time, readable by another user."""

import stat
from pathlib import Path

import pytest
import torch

from omni_runtime.families.registry import FAMILIES
from tests.models.tiny_folders import build, hashes, weights

pytestmark = pytest.mark.parametrize("name", FAMILIES.names())


@pytest.fixture
def checkpoint(name: str, tiny_checkpoint) -> Path:
    return tiny_checkpoint(name)


def test_the_same_seed_writes_the_same_bytes_and_another_seed_does_not(name, checkpoint, tmp_path):
    again, other = build(name, tmp_path / "again", 0), build(name, tmp_path / "other", 1)
    assert hashes(again) == hashes(checkpoint)
    assert hashes(other) != hashes(checkpoint)


def test_building_leaves_torchs_random_state_alone(name, tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    build(name, tmp_path / "model", 0)
    assert torch.equal(torch.rand(3), expected)


def test_it_has_less_than_five_million_finite_small_parameters(name, checkpoint):
    found = weights(checkpoint)
    assert 100_000 < sum(weight.numel() for weight in found.values()) < 5_000_000
    assert all(bool(weight.isfinite().all()) and weight.abs().max() <= 10 for weight in found.values())


def test_everybody_may_read_it(name, checkpoint):
    for path in (checkpoint, *checkpoint.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644)
