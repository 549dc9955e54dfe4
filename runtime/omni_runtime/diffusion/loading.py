"""Loads the components that a stage's phases need, and no others, from an ordinary diffusers pipeline folder."""

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from diffusers import ModularPipeline
from diffusers.modular_pipelines.modular_pipeline import SequentialPipelineBlocks
from diffusers.modular_pipelines.modular_pipeline_utils import ComponentSpec

from omni_contract.api.v1alpha1 import DiffusionPhase
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.diffusion import weights
from omni_runtime.diffusion.library_logs import tame_library_logs
from omni_runtime.families.protocol import DiffusionFamily

STORED_DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
"""safetensors' names."""


class ModelLoadError(OmniError):
    """The model folder cannot be used as it is; the message says why, and needs no traceback."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.STAGE_FAILED, message)


@dataclass(frozen=True)
class LoadPlan:
    """`dtype` None keeps each component as it is stored; `is_dummy` makes random weights from the configurations."""

    folder: Path
    device: torch.device
    dtype: torch.dtype | None = None
    is_dummy: bool = False


def load_blocks(
    family: DiffusionFamily, phases: tuple[DiffusionPhase, ...], plan: LoadPlan
) -> Generator[str | None, None, ModularPipeline]:
    """Work for the step thread: a turn for each component, announced by a line such as "loading transformer 2/3"."""
    _check_index(plan.folder / "model_index.json", family)
    tame_library_logs()
    began = monotonic()
    workflow = family.workflow()
    names = [name for phase in phases for name in family.blocks(phase).names]
    blocks = SequentialPipelineBlocks.from_blocks_dict({name: workflow.sub_blocks[name] for name in names})
    pipeline = blocks.init_pipeline(str(plan.folder))
    wanted = pipeline.pretrained_component_names
    for position, name in enumerate(wanted, start=1):
        yield f"loading {name} {position}/{len(wanted)}"
        pipeline.register_components(**{name: _component(pipeline.get_component_spec(name), plan)})
        yield None
    yield f"loaded {weights.size_bytes(pipeline) / 2**30:.3g} GiB in {monotonic() - began:.1f} s"
    return pipeline


def _check_index(index: Path, family: DiffusionFamily) -> None:
    """A checkpoint of another pipeline may have components of the same names, and would fail much later."""
    if not index.is_file():
        raise ModelLoadError(f"{index.parent} has no model_index.json; it must be a diffusers pipeline folder")
    found = json.loads(index.read_text()).get("_class_name")
    if found != family.pipeline:
        text = f'{index} is of a "{found}", but the model\'s family reads a "{family.pipeline}"'
        raise ModelLoadError(f"{text}; correct the model's source or its family")


def _component(spec: ComponentSpec, plan: LoadPlan) -> Any:
    if not spec.pretrained_model_name_or_path:
        raise ModelLoadError(f'{plan.folder}/model_index.json names no "{spec.name}"')
    if not issubclass(spec.type_hint, torch.nn.Module):
        return spec.load(local_files_only=True)
    folder = plan.folder / spec.subfolder
    if plan.is_dummy:
        module = _random_module(spec.type_hint, folder).to(plan.dtype or torch.float32)
    else:
        module = spec.load(local_files_only=True, dtype=plan.dtype or stored_dtype(folder))
    return module.to(plan.device).eval()


def stored_dtype(folder: Path) -> torch.dtype:
    """The element type of a component's weights, from the first safetensors header; float32 if it says none."""
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
        found = {entry["dtype"] for name, entry in header.items() if name != "__metadata__"}
        for name, dtype in STORED_DTYPES.items():
            if name in found:
                return dtype
    return torch.float32


def _random_module(kind: Any, folder: Path) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if hasattr(kind, "load_config"):
            diffusers_module: torch.nn.Module = kind.from_config(kind.load_config(str(folder)))
            return diffusers_module
        transformers_module: torch.nn.Module = kind(kind.config_class.from_pretrained(str(folder)))
        return transformers_module
