"""Builds a Qwen2.5-Omni checkpoint small enough for any laptop: thinker, talker, token2wav, two speakers, processors.

Transformers' own classes read it, whole or stage by stage, and so does vLLM. Same seed, same bytes.
"""

from pathlib import Path
from typing import Any

import torch
from transformers import Qwen2_5OmniConfig, Qwen2_5OmniForConditionalGeneration, Qwen2_5OmniProcessor, Qwen2Tokenizer

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
    image_token="<|IMAGE|>",
    audio_token="<|AUDIO|>",
    video_token="<|VIDEO|>",
    vision_bos_token="<|vision_bos|>",
    vision_eos_token="<|vision_eos|>",
    audio_bos_token="<|audio_bos|>",
    audio_eos_token="<|audio_eos|>",
)
SPEAKERS = ("Chelsie", "Ethan")
HIDDEN = 64
CODEC_VOCABULARY = 128
"""The last five are the codec's own, in the published order: padding, start, end, one that is free, mask."""
PATCH_SIZE = 14
HEAD_DIM = 32
"""The smallest that vLLM's attention on CPUs takes."""
ROPE = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]}
MEL_DIM = 80
SPEAKER_DIM = 16
REFERENCE_FRAMES = 300
LOUDNESS = 0.02
"""Of the last layer, so that the sound fills its range and is not cut off."""


def build(folder: Path, seed: int, report: Report) -> None:
    tame_transformers()
    report("training a tokenizer")
    tokenizer = omni_tokenizer(MEDIA)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        report("making thinker, talker and token2wav")
        model = Qwen2_5OmniForConditionalGeneration(_config(tokenizer)).eval()
        give_unit_gain(model)
        model.token2wav.code2wav_bigvgan_model.conv_post.weight.data.mul_(LOUDNESS)
        speakers = {name: _speaker(tokenizer) for name in SPEAKERS}
    check_parameters(model.named_children())
    report(f"writing {folder}")
    model.save_pretrained(folder)
    torch.save(speakers, folder / "spk_dict.pt")
    _processor(tokenizer).save_pretrained(folder)
    open_to_readers(folder)


def _config(tokenizer: Qwen2Tokenizer) -> Qwen2_5OmniConfig:
    return Qwen2_5OmniConfig(
        thinker_config=_thinker(tokenizer), talker_config=_talker(tokenizer), token2wav_config=_token2wav()
    )


def _media_ids(tokenizer: Qwen2Tokenizer) -> dict[str, int]:
    identifier = tokenizer.convert_tokens_to_ids
    return {
        "audio_token_index": identifier(MEDIA.audio_token),
        "image_token_index": identifier(MEDIA.image_token),
        "video_token_index": identifier(MEDIA.video_token),
        "audio_start_token_id": identifier(MEDIA.audio_bos_token),
        "audio_end_token_id": identifier(MEDIA.audio_eos_token),
        "vision_start_token_id": identifier(MEDIA.vision_bos_token),
        "vision_end_token_id": identifier(MEDIA.vision_eos_token),
    }


def _thinker(tokenizer: Qwen2Tokenizer) -> dict[str, Any]:
    identifier = tokenizer.convert_tokens_to_ids
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": HIDDEN // HEAD_DIM,
        "num_key_value_heads": 1,
        "max_position_embeddings": 4096,
        "rope_parameters": ROPE,
        "tie_word_embeddings": False,
        "bos_token_id": identifier("<|im_start|>"),
        "eos_token_id": identifier("<|im_end|>"),
        "pad_token_id": identifier("<|endoftext|>"),
    }
    audio = {
        "num_mel_bins": 128,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 64,
        "d_model": 32,
        "max_source_positions": 1500,
        "n_window": 100,
        "output_dim": HIDDEN,
    }
    vision = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "patch_size": PATCH_SIZE,
        "out_hidden_size": HIDDEN,
        "fullatt_block_indexes": [1],
    }
    return {
        "text_config": text,
        "audio_config": audio,
        "vision_config": vision,
        "user_token_id": identifier("user"),
        **_media_ids(tokenizer),
    }


def _talker(tokenizer: Qwen2Tokenizer) -> dict[str, Any]:
    identifier = tokenizer.convert_tokens_to_ids
    heads = 4
    return {
        "vocab_size": CODEC_VOCABULARY,
        "tts_text_start_token_id": identifier("<tts_text_bos>"),
        "tts_text_end_token_id": identifier("<tts_text_eod>"),
        "tts_text_pad_token_id": identifier("<tts_pad>"),
        "tts_codec_pad_token_id": CODEC_VOCABULARY - 5,
        "tts_codec_start_token_id": CODEC_VOCABULARY - 4,
        "tts_codec_end_token_id": CODEC_VOCABULARY - 3,
        "tts_codec_mask_token_id": CODEC_VOCABULARY - 1,
        "embedding_size": HIDDEN,
        # vLLM's Qwen2 derives the size of a head from these two.
        "hidden_size": heads * HEAD_DIM,
        "num_attention_heads": heads,
        "head_dim": HEAD_DIM,
        "num_key_value_heads": 2,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "max_position_embeddings": 4096,
        "rope_parameters": ROPE,
        **_media_ids(tokenizer),
    }


def _token2wav() -> dict[str, Any]:
    """The published one's rates: two frames of mel for a code, 240 samples for a frame."""
    transformer = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "head_dim": 16,
        "emb_dim": 16,
        "look_ahead_layers": [1],
        "look_backward_layers": [0],
        # A talker with random weights may say any code.
        "num_embeds": CODEC_VOCABULARY,
        "mel_dim": MEL_DIM,
        "enc_emb_dim": SPEAKER_DIM,
        "enc_dim": 16,
        "enc_channels": [16, 16, 16, 16, 48],
        "enc_attention_channels": 8,
        "enc_se_channels": 8,
        "dropout": 0.0,
    }
    return {"dit_config": transformer, "bigvgan_config": {"mel_dim": MEL_DIM, "upsample_initial_channel": 64}}


def _speaker(tokenizer: Qwen2Tokenizer) -> dict[str, Any]:
    return {
        "bos_token": tokenizer.convert_tokens_to_ids("<tts_text_bos>"),
        "cond": torch.randn(1, SPEAKER_DIM),
        "ref_mel": torch.randn(1, REFERENCE_FRAMES, MEL_DIM),
    }


def _processor(tokenizer: Qwen2Tokenizer) -> Qwen2_5OmniProcessor:
    return Qwen2_5OmniProcessor(
        image_processor=image_processor(PATCH_SIZE),
        video_processor=video_processor(PATCH_SIZE),
        feature_extractor=feature_extractor(),
        tokenizer=tokenizer,
        chat_template=tokenizer.chat_template,
    )
