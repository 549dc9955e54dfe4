"""Builds a Qwen3-Omni checkpoint small enough for any laptop: thinker and talker of experts, code predictor, code2wav.

Transformers' own classes read it, whole or stage by stage, and so does vLLM. Same seed, same bytes.
"""

from pathlib import Path
from typing import Any

import torch
from transformers import (
    Qwen2Tokenizer,
    Qwen3OmniMoeConfig,
    Qwen3OmniMoeForConditionalGeneration,
    Qwen3OmniMoeProcessor,
)

from omni_runtime.families.protocol import Report
from omni_runtime.families.tiny_checkpoint import check_parameters, give_unit_gain, open_to_readers
from omni_runtime.families.tiny_omni import (
    MediaTokens,
    feature_extractor,
    image_processor,
    omni_tokenizer,
    video_processor,
)
from omni_runtime.library_logs import tame_transformers

MEDIA = MediaTokens(
    image_token="<|image_pad|>",
    audio_token="<|audio_pad|>",
    video_token="<|video_pad|>",
    vision_bos_token="<|vision_start|>",
    vision_eos_token="<|vision_end|>",
    audio_bos_token="<|audio_start|>",
    audio_eos_token="<|audio_end|>",
)
HIDDEN = 64
TALKER_HIDDEN = 32
CODEBOOK = 64
"""The talker's own tokens follow the codes, at the distances of the published vocabulary."""
CODE_GROUPS = 4
SUPPRESSED = 1024
"""Transformers never lets the talker say the last ids of its vocabulary, but for the one that ends its speech."""
LOUDNESS = 0.05
"""Of the last layer, so that the sound fills its range and is not cut off."""
RESIDUAL_GAIN = 0.2
"""Of the decoder's twelve residual units in a row, which would else grow the signal, and rounding with it."""
PATCH_SIZE = 16
ROPE = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [8, 4, 4], "mrope_interleaved": True}
ATTENTION = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "num_hidden_layers": 2}
"""32 is the smallest head that vLLM's attention on CPUs takes."""
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}


def build(folder: Path, seed: int, report: Report) -> None:
    tame_transformers()
    report("training a tokenizer")
    tokenizer = omni_tokenizer(MEDIA)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        report("making thinker, talker and code2wav")
        model = Qwen3OmniMoeForConditionalGeneration(_config(tokenizer)).eval()
        give_unit_gain(model)
    _balance(model.code2wav)
    check_parameters(model.named_children())
    report(f"writing {folder}")
    model.save_pretrained(folder)
    _processor(tokenizer).save_pretrained(folder)
    open_to_readers(folder)


def _balance(code2wav: torch.nn.Module) -> None:
    """As after a training: blocks that begin one all but shut would hide what a chunk sees of the ones before it."""
    with torch.no_grad():
        for name, parameter in code2wav.named_parameters():
            if name.endswith((".gamma", "_layer_scale.scale")):
                parameter.fill_(1.0)
            elif name.endswith(".conv2.conv.weight"):
                parameter.mul_(RESIDUAL_GAIN)
        code2wav.decoder[-1].conv.weight.mul_(LOUDNESS)


def _config(tokenizer: Qwen2Tokenizer) -> Qwen3OmniMoeConfig:
    identifier = tokenizer.convert_tokens_to_ids
    return Qwen3OmniMoeConfig(
        thinker_config=_thinker(tokenizer),
        talker_config=_talker(tokenizer),
        code2wav_config=_code2wav(),
        im_start_token_id=identifier("<|im_start|>"),
        im_end_token_id=identifier("<|im_end|>"),
        tts_pad_token_id=identifier("<tts_pad>"),
        tts_bos_token_id=identifier("<tts_text_bos>"),
        tts_eos_token_id=identifier("<tts_text_eod>"),
        system_token_id=identifier("system"),
        user_token_id=identifier("user"),
        assistant_token_id=identifier("assistant"),
    )


def _media_ids(tokenizer: Qwen2Tokenizer) -> dict[str, int]:
    identifier = tokenizer.convert_tokens_to_ids
    return {
        "audio_token_id": identifier(MEDIA.audio_token),
        "image_token_id": identifier(MEDIA.image_token),
        "video_token_id": identifier(MEDIA.video_token),
        "audio_start_token_id": identifier(MEDIA.audio_bos_token),
        "vision_start_token_id": identifier(MEDIA.vision_bos_token),
    }


def _thinker(tokenizer: Qwen2Tokenizer) -> dict[str, Any]:
    identifier = tokenizer.convert_tokens_to_ids
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "max_position_embeddings": 4096,
        # vLLM asks for it, though transformers' class has no such field.
        "tie_word_embeddings": False,
        "rope_parameters": dict(ROPE),
        "bos_token_id": identifier("<|im_start|>"),
        "eos_token_id": identifier("<|im_end|>"),
        "pad_token_id": identifier("<|endoftext|>"),
        **ATTENTION,
        **EXPERTS,
    }
    audio = {
        "num_mel_bins": 128,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 64,
        "d_model": 32,
        "max_source_positions": 1500,
        "output_dim": HIDDEN,
        "downsample_hidden_size": 16,
    }
    vision = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "patch_size": PATCH_SIZE,
        "out_hidden_size": HIDDEN,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0],
        # vLLM asks for these two, though transformers' class has no such fields.
        "image_size": 128,
        "apply_vit_abs_pos_embed": True,
    }
    return {
        "text_config": text,
        "audio_config": audio,
        "vision_config": vision,
        "user_token_id": identifier("user"),
        "audio_end_token_id": identifier(MEDIA.audio_eos_token),
        "vision_end_token_id": identifier(MEDIA.vision_eos_token),
        **_media_ids(tokenizer),
    }


def _talker(tokenizer: Qwen2Tokenizer) -> dict[str, Any]:
    text = {
        "vocab_size": CODEBOOK + SUPPRESSED,
        "hidden_size": TALKER_HIDDEN,
        "intermediate_size": 64,
        "shared_expert_intermediate_size": 32,
        "max_position_embeddings": 4096,
        "rope_parameters": dict(ROPE),
        **ATTENTION,
        **EXPERTS,
    }
    predictor = {
        "vocab_size": CODEBOOK,
        "hidden_size": TALKER_HIDDEN,
        "intermediate_size": 64,
        "max_position_embeddings": 1024,
        "num_code_groups": CODE_GROUPS,
        **ATTENTION,
    }
    return {
        "text_config": text,
        "code_predictor_config": predictor,
        "num_code_groups": CODE_GROUPS,
        "thinker_hidden_size": HIDDEN,
        "accept_hidden_layer": 1,
        "codec_pad_id": CODEBOOK + 100,
        "codec_bos_id": CODEBOOK + 101,
        "codec_eos_token_id": CODEBOOK + 102,
        "codec_nothink_id": CODEBOOK + 107,
        "codec_think_bos_id": CODEBOOK + 108,
        "codec_think_eos_id": CODEBOOK + 109,
        "speaker_id": {"chelsie": CODEBOOK + 253, "ethan": CODEBOOK + 254, "aiden": CODEBOOK + 255},
        "spatial_merge_size": 2,
        **_media_ids(tokenizer),
    }


def _code2wav() -> dict[str, Any]:
    """The published one's rates, 1920 samples for a frame; a short window, so that short speech outruns it."""
    return {
        "codebook_size": CODEBOOK,
        "hidden_size": 32,
        "max_position_embeddings": 4096,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "sliding_window": 4,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_quantizers": CODE_GROUPS,
        "decoder_dim": 64,
    }


def _processor(tokenizer: Qwen2Tokenizer) -> Qwen3OmniMoeProcessor:
    return Qwen3OmniMoeProcessor(
        image_processor=image_processor(PATCH_SIZE),
        video_processor=video_processor(PATCH_SIZE),
        feature_extractor=feature_extractor(),
        tokenizer=tokenizer,
        chat_template=tokenizer.chat_template,
    )
