"""Builds a Qwen-Image checkpoint small enough for any laptop: random weights, locally trained tokenizer, fixed seed.

The real loading code reads it, in our engine and in plain diffusers. Same seed, same bytes.
"""

from pathlib import Path

import torch
from diffusers import (
    AutoencoderKLQwenImage,
    FlowMatchEulerDiscreteScheduler,
    QwenImagePipeline,
    QwenImageTransformer2DModel,
)
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2Tokenizer

from omni_runtime.diffusion.library_logs import tame_library_logs
from omni_runtime.families.protocol import Report
from omni_runtime.families.tiny_checkpoint import check_parameters, open_to_readers
from omni_runtime.families.tiny_tokenizer import train_tokenizer

HIDDEN = 64
PROMPT_GAIN = 2.5
"""Widens the transformer's weights until prompt and seed both show; torch's own initialization hides the prompt."""


def build(folder: Path, seed: int, report: Report) -> None:
    tame_library_logs()
    report("training a tokenizer")
    tokenizer = train_tokenizer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        report("making text encoder, transformer and vae")
        pipeline = QwenImagePipeline(
            scheduler=_scheduler(),
            vae=_vae(),
            text_encoder=_text_encoder(tokenizer),
            tokenizer=tokenizer,
            transformer=_transformer(),
        )
    check_parameters((name, part) for name, part in pipeline.components.items() if isinstance(part, torch.nn.Module))
    report(f"writing {folder}")
    pipeline.save_pretrained(folder)
    open_to_readers(folder)


def _scheduler() -> FlowMatchEulerDiscreteScheduler:
    """As the published checkpoints set it."""
    return FlowMatchEulerDiscreteScheduler(
        base_image_seq_len=256,
        base_shift=0.5,
        max_image_seq_len=8192,
        max_shift=0.9,
        shift=1.0,
        shift_terminal=0.02,
        time_shift_type="exponential",
        use_dynamic_shifting=True,
    )


def _text_encoder(tokenizer: Qwen2Tokenizer) -> Qwen2_5_VLForConditionalGeneration:
    identifier = tokenizer.convert_tokens_to_ids
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]},
        "tie_word_embeddings": False,
        "bos_token_id": identifier("<|im_start|>"),
        "eos_token_id": identifier("<|im_end|>"),
        "pad_token_id": identifier("<|endoftext|>"),
    }
    vision = {
        "depth": 1,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": HIDDEN,
        "patch_size": 14,
        "window_size": 112,
        "fullatt_block_indexes": [0],
    }
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=identifier("<|image_pad|>"),
        video_token_id=identifier("<|video_pad|>"),
        vision_start_token_id=identifier("<|vision_start|>"),
        vision_end_token_id=identifier("<|vision_end|>"),
    )
    return Qwen2_5_VLForConditionalGeneration(config).eval()


def _transformer() -> QwenImageTransformer2DModel:
    transformer = QwenImageTransformer2DModel(
        patch_size=2,
        in_channels=64,
        out_channels=16,
        num_layers=2,
        attention_head_dim=16,
        num_attention_heads=3,
        joint_attention_dim=HIDDEN,
        axes_dims_rope=(8, 4, 4),
    )
    with torch.no_grad():
        for module in transformer.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.mul_(PROMPT_GAIN)
    return transformer.eval()


def _vae() -> AutoencoderKLQwenImage:
    return AutoencoderKLQwenImage(
        base_dim=8, z_dim=16, dim_mult=[1, 2, 4, 4], num_res_blocks=1, temperal_downsample=[False, True, True]
    ).eval()
