"""How the talker and its code predictor choose codes, as `generate` of transformers does."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from omni_contract.wire.payload import Value
from omni_runtime.engines.ar.sampling import RULES, refusal, sampling_of
from omni_runtime.families.code_choice import Chooser, Narrowing
from omni_runtime.families.qwen3_tts.configuration import TalkerConfig

PREDICTOR = "subtalker_"
"""Before the names of the code predictor's parameters."""
CHOOSING = ("temperature", "top_k", "top_p")
DEFAULTS: Mapping[str, Value] = {
    "temperature": 0.9,
    "top_k": 50,
    "top_p": 1.0,
    "repetition_penalty": 1.05,
    "min_tokens": 2,
    "max_tokens": 2048,
    "subtalker_temperature": 0.9,
    "subtalker_top_k": 50,
    "subtalker_top_p": 1.0,
}
"""Of the qwen-tts package, under what the checkpoint's generation_config.json says."""
SILENT_IDS = 1024
"""The last ids of the vocabulary, which are no codes; but for the one that ends the speech they are never said."""


@dataclass(frozen=True)
class Sampling:
    talker: Narrowing
    predictor: Narrowing
    repetition_penalty: float
    min_frames: int
    max_frames: int
    seed: int


def checkpoint_defaults(folder: Path) -> dict[str, Value]:
    """What the checkpoint's generation_config.json says over the package's defaults, in our names."""
    path = folder / "generation_config.json"
    said = json.loads(path.read_text()) if path.is_file() else {}
    defaults = dict(DEFAULTS) | {name: said[name] for name in DEFAULTS if name in said}
    if "max_new_tokens" in said:
        defaults["max_tokens"] = said["max_new_tokens"]
    for name, flag in (("temperature", "do_sample"), ("subtalker_temperature", "subtalker_dosample")):
        if said.get(flag) is False:
            defaults[name] = 0
    return defaults


def sampling(parameters: Mapping[str, Value], defaults: Mapping[str, Value]) -> Sampling:
    """Raises OmniError naming a parameter that is wrong."""
    for name in CHOOSING:
        if (value := parameters.get(PREDICTOR + name)) is not None and not RULES[name].holds(value):
            raise refusal(PREDICTOR + name, value, f"it must be {RULES[name].demand}")
    values = {**defaults, **parameters, **sampling_of(parameters)}
    return Sampling(
        talker=_narrowing(values, ""),
        predictor=_narrowing(values, PREDICTOR),
        repetition_penalty=_number(values["repetition_penalty"]),
        min_frames=int(_number(values["min_tokens"])),
        max_frames=int(_number(values["max_tokens"])),
        seed=int(_number(values.get("seed", 0))),
    )


def first_codes(config: TalkerConfig, device: torch.device) -> Chooser:
    """Of the talker's tokens, those that may begin a frame."""
    end = config.codec_eos_token_id
    silent = [token for token in range(config.vocab_size - SILENT_IDS, config.vocab_size) if token != end]
    return Chooser(never=torch.tensor(silent, device=device), ends=torch.tensor([end], device=device))


def _narrowing(values: Mapping[str, Value], prefix: str) -> Narrowing:
    temperature, top_k, top_p = (_number(values[prefix + name]) for name in CHOOSING)
    return Narrowing(temperature, int(top_k), top_p)


def _number(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)
