"""A LoRA adapter for a tiny language model, and the model with it in its weights."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

NAME, PATH = "poet", "adapters/poet"
RANK, ALPHA = 8, 16
TARGETS = ("q_proj", "v_proj")


def add_adapter(folder: Path) -> Any:
    """Written beside the model in `folder`, as a stage finds it at PATH; returns the model that has taken it in."""
    adapter = folder / PATH
    adapter.mkdir(parents=True)
    model, weights = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), dict[str, torch.Tensor]()
    draws = torch.Generator().manual_seed(1)
    for number, layer in enumerate(model.model.layers):
        for target in TARGETS:
            product = getattr(layer.self_attn, target)
            down = torch.randn((RANK, product.in_features), generator=draws) * 0.2
            up = torch.randn((product.out_features, RANK), generator=draws) * 0.2
            name = f"base_model.model.model.layers.{number}.self_attn.{target}"
            weights |= {f"{name}.lora_A.weight": down, f"{name}.lora_B.weight": up}
            product.weight.data += up @ down * (ALPHA / RANK)
    save_file(weights, adapter / "adapter_model.safetensors")
    told = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "target_modules": list(TARGETS), "bias": "none"}
    (adapter / "adapter_config.json").write_text(json.dumps(told))
    return model
