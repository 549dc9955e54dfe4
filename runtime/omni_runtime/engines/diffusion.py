"""The `diffusion` engine of the registry: makes a DiffusionEngine from a stage file."""

from pathlib import Path

import torch

from omni_contract.api.v1alpha1 import DiffusionEngine as DiffusionBlock
from omni_contract.wire.stage_file import StageFile
from omni_runtime.diffusion.device import torch_device
from omni_runtime.diffusion.engine import DiffusionEngine, DiffusionSettings
from omni_runtime.diffusion.loading import LoadPlan
from omni_runtime.engines.protocol import UnusableEngineError
from omni_runtime.families.registry import diffusion_family


def create(stage_file: StageFile) -> DiffusionEngine:
    block = stage_file.engine
    if not isinstance(block, DiffusionBlock):
        raise TypeError(f'stage "{stage_file.stage}" has a {type(block).__name__} block, not a diffusion one')
    if stage_file.family is None:
        raise UnusableEngineError("a diffusion engine needs the model's family")
    plan = LoadPlan(
        folder=Path(stage_file.model_path),
        device=torch_device(stage_file.vendor),
        dtype=None if block.dtype == "auto" else getattr(torch, block.dtype),
        is_dummy=stage_file.load_format == "dummy",
    )
    settings = DiffusionSettings(
        stage=stage_file.stage,
        family=diffusion_family(stage_file.family),
        phases=block.phases,
        plan=plan,
        max_in_flight=stage_file.max_in_flight,
    )
    return DiffusionEngine(settings)
