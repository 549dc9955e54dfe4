"""Builds a Qwen3-TTS checkpoint small enough for any laptop, in the folders and under the names of the published ones.

The qwen-tts package reads it, and so do our stages. Same seed, same bytes.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import MimiConfig, Qwen2Tokenizer

from omni_runtime.families.protocol import Report
from omni_runtime.families.qwen3_tts.cloning import CodecEncoder, SpeakerEncoder
from omni_runtime.families.qwen3_tts.codec_module import CodecModule
from omni_runtime.families.qwen3_tts.configuration import CodecDecoderConfig, SpeakerEncoderConfig, TalkerConfig
from omni_runtime.families.qwen3_tts.talker_module import TalkerModule
from omni_runtime.families.tiny_checkpoint import check_parameters, give_unit_gain, open_to_readers
from omni_runtime.families.tiny_tokenizer import train_tokenizer
from omni_runtime.library_logs import tame_transformers

TEXT_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>")
ROLES = ("user", "assistant")
"""A turn's head is three tokens, the role being one."""
CODEBOOK = 64
CODE_GROUPS = 4
VOICES = ("vivian", "serena", "uncle_fu", "dylan", "eric", "ryan", "aiden", "ono_anna", "sohee")
LANGUAGES = (
    *("chinese", "english", "german", "italian", "portuguese", "spanish", "japanese", "korean", "french", "russian"),
    *("beijing_dialect", "sichuan_dialect"),
)
DIALECTS = {"dylan": "beijing_dialect", "eric": "sichuan_dialect"}
HIDDEN, TEXT_HIDDEN, PREDICTOR_HIDDEN, HEAD_DIM = 64, 48, 32, 32
LOUDNESS = 0.05
"""Of the last layer, so that the sound fills its range and is not cut off."""
RESIDUAL_GAIN = 0.2
"""Of the decoder's twelve residual units in a row, which would else grow the signal, and rounding with it."""
GENERATION = {
    "do_sample": True,
    "temperature": 0.9,
    "top_k": 50,
    "top_p": 1.0,
    "repetition_penalty": 1.05,
    "subtalker_dosample": True,
    "subtalker_temperature": 0.9,
    "subtalker_top_k": 50,
    "subtalker_top_p": 1.0,
    "max_new_tokens": 2048,
}

FEATURE_EXTRACTOR = {
    "chunk_length_s": None,
    "feature_extractor_type": "EncodecFeatureExtractor",
    "feature_size": 1,
    "overlap": None,
    "padding_side": "right",
    "padding_value": 0.0,
    "return_attention_mask": True,
    "sampling_rate": 24_000,
}
SPEAKER_ENCODER = {
    "enc_dim": HIDDEN,
    "enc_channels": [16, 16, 16, 16, 48],
    "enc_attention_channels": 8,
    "enc_se_channels": 8,
    "sample_rate": 24_000,
}
DECODER = {
    "codebook_size": CODEBOOK,
    "codebook_dim": 32,
    "hidden_size": 32,
    "latent_dim": 48,
    "head_dim": 16,
    "max_position_embeddings": 8000,
    "rope_theta": 10_000,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "sliding_window": 4,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_quantizers": CODE_GROUPS,
    "upsample_rates": [8, 5, 4, 3],
    "upsampling_ratios": [2, 2],
    "decoder_dim": 64,
}
"""The published one's rates, 1920 samples for a frame; a short window, so that short speech outruns it."""
ENCODER = {
    "sampling_rate": 24_000,
    "frame_rate": 12.5,
    "hidden_size": 32,
    "num_filters": 4,
    "codebook_size": CODEBOOK,
    "codebook_dim": 16,
    "vector_quantization_hidden_dimension": 16,
    "num_quantizers": CODE_GROUPS + 2,
    "upsample_groups": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "sliding_window": 8,
}
CODEC = {
    "architectures": ["Qwen3TTSTokenizerV2Model"],
    "model_type": "qwen3_tts_tokenizer_12hz",
    "encoder_valid_num_quantizers": CODE_GROUPS,
    "input_sample_rate": 24_000,
    "output_sample_rate": 24_000,
    "decode_upsample_rate": 1920,
    "encode_downsample_rate": 1920,
    "encoder_config": ENCODER,
    "decoder_config": DECODER,
}


def build(folder: Path, seed: int, report: Report, kind: str = "custom_voice") -> None:
    """`kind` is a published `tts_model_type`."""
    tame_transformers()
    report("training a tokenizer")
    tokenizer = train_tokenizer(TEXT_TOKENS, words=ROLES)
    talker = talker_config(tokenizer, kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        report("making talker, code predictor and codec")
        speaking, sounding = _speaking(talker, kind), _sounding()
    check_parameters([*speaking.items(), *sounding.items()])
    report(f"writing {folder}")
    _write(folder, speaking, config(tokenizer, talker, kind))
    _write_json(folder / "generation_config.json", GENERATION)
    write_tokenizer(folder, tokenizer)
    _write(folder / "speech_tokenizer", sounding, CODEC)
    _write_json(folder / "speech_tokenizer" / "preprocessor_config.json", FEATURE_EXTRACTOR)
    open_to_readers(folder)


def _speaking(talker: Mapping[str, Any], kind: str) -> dict[str, torch.nn.Module]:
    """By the prefix of their weights; only a checkpoint that clones voices listens to speakers."""
    modules: dict[str, torch.nn.Module] = {"talker": TalkerModule(TalkerConfig(**talker)).eval()}
    if kind == "base":
        modules["speaker_encoder"] = SpeakerEncoder(SpeakerEncoderConfig(**SPEAKER_ENCODER)).eval()
    for module in modules.values():
        give_unit_gain(module)
    # Random weights would end most speeches at once.
    modules["talker"].get_submodule("codec_head").weight.data[talker["codec_eos_token_id"]] = 0
    return modules


def _sounding() -> dict[str, torch.nn.Module]:
    decoder, encoder = CodecModule(CodecDecoderConfig(**DECODER)).eval(), CodecEncoder(MimiConfig(**ENCODER)).eval()
    give_unit_gain(decoder)
    give_unit_gain(encoder)
    _balance(decoder)
    for name, buffer in encoder.named_buffers():
        if name.endswith(".embed_sum"):
            buffer.normal_()
    return {"decoder": decoder, "encoder": encoder}


def config(tokenizer: Qwen2Tokenizer, talker: Mapping[str, Any], kind: str) -> dict[str, Any]:
    identifier = tokenizer.convert_tokens_to_ids
    return {
        "architectures": ["Qwen3TTSForConditionalGeneration"],
        "model_type": "qwen3_tts",
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        "tts_model_size": "1b7",
        "tts_model_type": kind,
        "assistant_token_id": identifier("assistant"),
        "im_start_token_id": identifier("<|im_start|>"),
        "im_end_token_id": identifier("<|im_end|>"),
        "tts_pad_token_id": identifier("<tts_pad>"),
        "tts_bos_token_id": identifier("<tts_text_bos>"),
        "tts_eos_token_id": identifier("<tts_text_eod>"),
        "talker_config": dict(talker),
        **({"speaker_encoder_config": SPEAKER_ENCODER} if kind == "base" else {}),
    }


def talker_config(tokenizer: Qwen2Tokenizer, kind: str) -> dict[str, Any]:
    """The talker's own tokens follow the codes, at the distances of the published vocabulary."""
    own = CODEBOOK + 100
    attention = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": HEAD_DIM, "num_hidden_layers": 2}
    has_voices = kind == "custom_voice"
    return {
        "model_type": "qwen3_tts_talker",
        "vocab_size": CODEBOOK + 1024,
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "text_hidden_size": TEXT_HIDDEN,
        "text_vocab_size": len(tokenizer),
        "max_position_embeddings": 4096,
        "rope_theta": 1e6,
        "rope_scaling": {"interleaved": True, "mrope_section": [8, 4, 4], "rope_type": "default", "type": "default"},
        "num_code_groups": CODE_GROUPS,
        "codec_pad_id": own,
        "codec_bos_id": own + 1,
        "codec_eos_token_id": own + 2,
        "codec_think_id": own + 6,
        "codec_nothink_id": own + 7,
        "codec_think_bos_id": own + 8,
        "codec_think_eos_id": own + 9,
        "codec_language_id": {name: CODEBOOK + 2 + position for position, name in enumerate(LANGUAGES)},
        "spk_id": {name: CODEBOOK + 800 + place for place, name in enumerate(VOICES)} if has_voices else {},
        "spk_is_dialect": {name: DIALECTS.get(name, False) for name in VOICES} if has_voices else {},
        "code_predictor_config": {
            "model_type": "qwen3_tts_talker_code_predictor",
            "vocab_size": CODEBOOK,
            "hidden_size": PREDICTOR_HIDDEN,
            "intermediate_size": 2 * PREDICTOR_HIDDEN,
            "max_position_embeddings": 4096,
            "rope_theta": 1e6,
            "num_code_groups": CODE_GROUPS,
            **attention,
        },
        **attention,
    }


def write_tokenizer(folder: Path, tokenizer: Qwen2Tokenizer) -> None:
    """As files of the generation of the published ones, which the package's older transformers reads."""
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    _write_json(folder / "vocab.json", model["vocab"])
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    added = {
        str(token_id): {
            "content": token.content,
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": token.special,
        }
        for token_id, token in tokenizer.added_tokens_decoder.items()
    }
    settings = {
        "add_prefix_space": False,
        "added_tokens_decoder": added,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": 4096,
        "tokenizer_class": "Qwen2Tokenizer",
    }
    _write_json(folder / "tokenizer_config.json", settings)
    _write_json(folder / "preprocessor_config.json", {"processor_class": "Qwen3TTSProcessor"})


def _balance(codec: CodecModule) -> None:
    """As after a training: blocks that begin one all but shut would hide what a chunk sees of the ones before it."""
    with torch.no_grad():
        for name, parameter in codec.named_parameters():
            if name.endswith((".gamma", "_layer_scale.scale")):
                parameter.fill_(1.0)
            elif name.endswith(".conv2.conv.weight"):
                parameter.mul_(RESIDUAL_GAIN)
            elif name.endswith(".embedding_sum"):
                parameter.normal_()
            elif name.endswith(".cluster_usage"):
                parameter.uniform_(0.5, 2.0)
        codec.decoder[-1].conv.weight.mul_(LOUDNESS)


def _write(folder: Path, modules: Mapping[str, torch.nn.Module], settings: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    named = {
        f"{prefix}.{name}": weight.contiguous()
        for prefix, module in modules.items()
        for name, weight in module.state_dict().items()
    }
    save_file(named, folder / "model.safetensors", {"format": "pt"})
    _write_json(folder / "config.json", settings)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
