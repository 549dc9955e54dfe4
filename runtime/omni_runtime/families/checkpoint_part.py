"""Loads one stage's module from a checkpoint that holds all of them, each under a prefix of its own."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar, cast

import torch
from safetensors import safe_open
from transformers import PreTrainedConfig, PreTrainedModel

from omni_runtime.library_logs import without_loading_report
from omni_runtime.stepping.loading import LoadPlan, ModelLoadError

C = TypeVar("C", bound=PreTrainedConfig)
M = TypeVar("M", bound=PreTrainedModel)


def read_config(kind: type[C], plan: LoadPlan) -> C:
    """The checkpoint's configuration; ModelLoadError if it is another model's, whose parts may have the same names."""
    path = plan.folder / "config.json"
    if not path.is_file():
        raise ModelLoadError(f"{plan.folder} has no config.json; it must be the folder of a transformers checkpoint")
    found = json.loads(path.read_text()).get("model_type")
    if found != kind.model_type:
        text = f'{path} is of a "{found}", but the model\'s family reads a "{kind.model_type}"'
        raise ModelLoadError(f"{text}; correct the model's source or its family")
    return cast(C, kind.from_pretrained(plan.folder, local_files_only=True))


def load_module(kind: type[M], config: PreTrainedConfig, prefix: str | None, plan: LoadPlan) -> M:
    """On the plan's device, in its format; ModelLoadError if the checkpoint lacks some of its weights.

    `prefix` is what the checkpoint calls the part; None is the whole.
    """
    if plan.is_dummy:
        return _random_module(kind, config, plan)
    with without_loading_report():
        module, report = kind.from_pretrained(
            plan.folder,
            config=config,
            key_mapping={f"^{prefix}\\.": ""} if prefix else None,
            dtype=plan.dtype or "auto",
            local_files_only=True,
            output_loading_info=True,
        )
    if missing := sorted(report["missing_keys"]):
        text = f'{plan.folder} lacks {len(missing)} weights of "{prefix or kind.__name__}", among them {missing[0]}'
        raise ModelLoadError(f"{text}; it is not a whole checkpoint of this model")
    module.to(plan.device).eval()
    return cast(M, module)


def table_rows(plan: LoadPlan, name: str, rows: Sequence[int], width: int) -> dict[int, torch.Tensor]:
    """A few rows of a large table, by their number, without the rest of it; made-up ones if all weights are."""
    if plan.is_dummy:
        return {row: torch.zeros(width) for row in rows}
    with safe_open(_file_of(plan, name), framework="pt") as weights:
        table = weights.get_slice(name)
        return {row: table[row] for row in rows}


def _file_of(plan: LoadPlan, name: str) -> Path:
    """Where a checkpoint, which may be in several files, keeps a weight."""
    index = plan.folder / "model.safetensors.index.json"
    if not index.is_file():
        return plan.folder / "model.safetensors"
    files = json.loads(index.read_text())["weight_map"]
    if name not in files:
        raise ModelLoadError(f'{index} lists no "{name}"')
    return plan.folder / str(files[name])


def _random_module(kind: type[M], config: PreTrainedConfig, plan: LoadPlan) -> M:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module: M = kind(config)
    module.to(plan.device, plan.dtype or torch.float32).eval()
    return module
