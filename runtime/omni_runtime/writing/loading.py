"""Loads a writer: the whole model of a folder, or the part of a family's checkpoint that makes text."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import transformers
from transformers import AutoConfig, PreTrainedConfig

from omni_runtime.engines.ar.prompts import Prompts
from omni_runtime.families.checkpoint_part import load_module
from omni_runtime.families.protocol import TransformersPart
from omni_runtime.library_logs import tame_transformers
from omni_runtime.stepping import weights
from omni_runtime.stepping.loading import LoadPlan, ModelLoadError
from omni_runtime.stepping.resident import Loading
from omni_runtime.writing.layers import Layers
from omni_runtime.writing.media_inputs import MediaInputs
from omni_runtime.writing.writer import Reader, Writer

PROCESSORS = ("processor_config.json", "preprocessor_config.json")
"""A checkpoint has one of them if its model reads more than text."""


@dataclass(frozen=True)
class WriterPlan:
    """`part` None is the whole model; `max_length` None what the model allows; `hidden_layers` leave the stage."""

    load: LoadPlan
    part: TransformersPart | None
    hidden_layers: tuple[int, ...]
    max_length: int | None
    media_per_prompt: Mapping[str, int]
    """By modality."""


def load(plan: WriterPlan) -> Loading[Writer]:
    tame_transformers()
    yield f"loading {plan.load.folder.name}"
    config, architecture, name = _described(plan)
    module = load_module(_class(architecture, plan.load), config, name, plan.load)
    layers = Layers(module, plan.hidden_layers)
    max_length = min(plan.max_length or layers.max_length, layers.max_length)
    folder = plan.load.folder
    prompts = Prompts(folder, layers.vocabulary_size, max_length)
    if not hasattr(prompts.tokenizer, "backend_tokenizer"):
        raise ModelLoadError(f"the tokenizer of {folder} has no tokenizer.json; backend vllm can run it")
    reads_media = any((folder / file).is_file() for file in PROCESSORS)
    media = MediaInputs(folder, plan.media_per_prompt) if reads_media else None
    yield f"loaded {weights.size_bytes([module]) / 2**30:.3g} GiB"
    return Writer(layers, Reader(prompts, media), max_length)


def _described(plan: WriterPlan) -> tuple[PreTrainedConfig, str, str | None]:
    """Configuration and class of what is loaded, and what its weights are called in the whole, if it is a part."""
    file = plan.load.folder / "config.json"
    if not file.is_file():
        raise ModelLoadError(
            f"{plan.load.folder} has no config.json; it must be the folder of a transformers checkpoint"
        )
    whole = AutoConfig.from_pretrained(plan.load.folder, local_files_only=True)
    if plan.part is not None:
        return getattr(whole, f"{plan.part.name}_config"), plan.part.architecture, plan.part.name
    if hasattr(whole, "thinker_config"):
        raise ModelLoadError(f"{file} is of a model of several parts; name its family, and set ar.part to thinker")
    architectures = json.loads(file.read_text()).get("architectures") or []
    if not architectures:
        raise ModelLoadError(f'{file} names no "architectures"; it must say which class of transformers reads it')
    return whole, architectures[0], None


def _class(architecture: str, plan: LoadPlan) -> type[Any]:
    kind: Any = getattr(transformers, architecture, None)
    if not isinstance(kind, type) or not getattr(kind, "can_generate", lambda: False)():
        text = f'transformers has no class "{architecture}" that makes text, which {plan.folder} is of'
        raise ModelLoadError(f"{text}; backend vllm may have one")
    return kind
