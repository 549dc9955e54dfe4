"""Loads the components that a stage's phases need, and no others, from an ordinary diffusers pipeline folder."""

import json
from collections.abc import Generator
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from diffusers import ModularPipeline
from diffusers.modular_pipelines.modular_pipeline import SequentialPipelineBlocks
from diffusers.modular_pipelines.modular_pipeline_utils import ComponentSpec

from omni_contract.api.v1alpha1 import DiffusionPhase
from omni_runtime.diffusion.library_logs import tame_library_logs
from omni_runtime.families.protocol import DiffusionFamily
from omni_runtime.stepping import weights
from omni_runtime.stepping.loading import LoadPlan, ModelLoadError, stored_dtype


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
    yield f"loaded {weights.size_bytes(modules_of(pipeline)) / 2**30:.3g} GiB in {monotonic() - began:.1f} s"
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


def _random_module(kind: Any, folder: Path) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if hasattr(kind, "load_config"):
            diffusers_module: torch.nn.Module = kind.from_config(kind.load_config(str(folder)))
            return diffusers_module
        transformers_module: torch.nn.Module = kind(kind.config_class.from_pretrained(str(folder)))
        return transformers_module


def modules_of(blocks: ModularPipeline) -> list[torch.nn.Module]:
    """The components with weights."""
    components = [getattr(blocks, name) for name in blocks.pretrained_component_names]
    return [component for component in components if isinstance(component, torch.nn.Module)]
