"""Looks at tiny checkpoints: their bytes and their weights."""

import hashlib
from pathlib import Path

import torch
from safetensors.torch import load_file

from omni_runtime.families.registry import family


def build(name: str, folder: Path, seed: int) -> Path:
    family(name).build_tiny(folder, seed, lambda line: None)
    return folder


def hashes(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return {f"{file}/{name}": w for file in folder.rglob("*.safetensors") for name, w in load_file(file).items()}
