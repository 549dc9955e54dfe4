"""Qwen3-TTS's configuration under the names of its checkpoints, in the form that transformers' classes read.

The defaults are those of the qwen-tts package, for what a checkpoint leaves out.
"""

from typing import Any, ClassVar

from transformers import PreTrainedConfig
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config


class CodePredictorConfig(Qwen3Config):
    model_type = "qwen3_tts_talker_code_predictor"

    vocab_size: int = 2048
    hidden_size: int = 1024
    intermediate_size: int = 3072
    num_hidden_layers: int = 5
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 8
    num_code_groups: int = 32


class TalkerConfig(Qwen3Config):
    """A Qwen3 decoder over codes. Its three kinds of positions are always equal, so that they are those of Qwen3."""

    model_type = "qwen3_tts_talker"
    sub_configs: ClassVar[dict[str, type[PreTrainedConfig]]] = {"code_predictor_config": CodePredictorConfig}

    code_predictor_config: dict[str, Any] | PreTrainedConfig | None = None
    vocab_size: int = 3072
    hidden_size: int = 1024
    intermediate_size: int = 2048
    num_hidden_layers: int = 20
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 2
    head_dim: int = 0
    """0 spreads the hidden size over the heads."""
    num_code_groups: int = 32
    text_hidden_size: int = 2048
    text_vocab_size: int = 151936
    codec_eos_token_id: int = 4198
    codec_think_id: int = 4202
    codec_nothink_id: int = 4203
    codec_think_bos_id: int = 4204
    codec_think_eos_id: int = 4205
    codec_pad_id: int = 4196
    codec_bos_id: int = 4197
    spk_id: dict[str, int] | None = None
    spk_is_dialect: dict[str, str | bool] | None = None
    codec_language_id: dict[str, int] | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        self.head_dim = self.head_dim or self.hidden_size // self.num_attention_heads
        if not isinstance(self.code_predictor_config, PreTrainedConfig):
            self.code_predictor_config = CodePredictorConfig(**(self.code_predictor_config or {}))
        super().__post_init__(**kwargs)

    @property
    def speakers(self) -> dict[str, int]:
        """The token of each voice, by its name in small letters."""
        return self.spk_id or {}

    @property
    def languages(self) -> list[str]:
        """In small letters; dialects belong to voices, and requests do not name them."""
        return [name for name in self.codec_language_id or {} if "dialect" not in name]

    def dialect_of(self, voice: str) -> str | None:
        """What a voice speaks where it would speak Chinese."""
        dialect = (self.spk_is_dialect or {}).get(voice, False)
        return dialect if isinstance(dialect, str) else None


class SpeakerEncoderConfig(PreTrainedConfig):
    model_type = "qwen3_tts_speaker_encoder"

    mel_dim: int = 128
    enc_dim: int = 1024
    enc_channels: list[int] | tuple[int, ...] = (512, 512, 512, 512, 1536)
    enc_kernel_sizes: list[int] | tuple[int, ...] = (5, 3, 3, 3, 1)
    enc_dilations: list[int] | tuple[int, ...] = (1, 2, 3, 4, 1)
    enc_attention_channels: int = 128
    enc_res2net_scale: int = 8
    enc_se_channels: int = 128
    sample_rate: int = 24_000


class Qwen3TTSConfig(PreTrainedConfig):
    model_type = "qwen3_tts"
    sub_configs: ClassVar[dict[str, type[PreTrainedConfig]]] = {
        "talker_config": TalkerConfig,
        "speaker_encoder_config": SpeakerEncoderConfig,
    }

    talker_config: dict[str, Any] | PreTrainedConfig | None = None
    speaker_encoder_config: dict[str, Any] | PreTrainedConfig | None = None
    tokenizer_type: str | None = None
    tts_model_size: str | None = None
    tts_model_type: str | None = None
    im_start_token_id: int = 151644
    im_end_token_id: int = 151645
    tts_pad_token_id: int = 151671
    tts_bos_token_id: int = 151672
    tts_eos_token_id: int = 151673

    def __post_init__(self, **kwargs: Any) -> None:
        if not isinstance(self.talker_config, PreTrainedConfig):
            self.talker_config = TalkerConfig(**(self.talker_config or {}))
        if not isinstance(self.speaker_encoder_config, PreTrainedConfig):
            self.speaker_encoder_config = SpeakerEncoderConfig(**(self.speaker_encoder_config or {}))
        super().__post_init__(**kwargs)

    @property
    def talker(self) -> TalkerConfig:
        assert isinstance(self.talker_config, TalkerConfig)
        return self.talker_config

    @property
    def speaker_encoder(self) -> SpeakerEncoderConfig:
        assert isinstance(self.speaker_encoder_config, SpeakerEncoderConfig)
        return self.speaker_encoder_config


class CodecDecoderConfig(PreTrainedConfig):
    """Of what makes sound of codes; read from the checkpoint's folder `speech_tokenizer`."""

    model_type = "qwen3_tts_tokenizer_12hz_decoder"

    codebook_size: int = 2048
    codebook_dim: int = 512
    hidden_size: int = 1024
    latent_dim: int = 1024
    max_position_embeddings: int = 8000
    rope_parameters: dict[str, Any] | None = None
    num_attention_heads: int = 16
    num_key_value_heads: int = 16
    head_dim: int = 0
    """0 spreads the hidden size over the heads."""
    attention_bias: bool = False
    sliding_window: int = 72
    intermediate_size: int = 3072
    hidden_act: str = "silu"
    layer_scale_initial_scale: float = 0.01
    rms_norm_eps: float = 1e-5
    num_hidden_layers: int = 8
    num_quantizers: int = 16
    upsample_rates: list[int] | tuple[int, ...] = (8, 5, 4, 3)
    upsampling_ratios: list[int] | tuple[int, ...] = (2, 2)
    decoder_dim: int = 1536
    attention_dropout: float | int = 0.0
    initializer_range: float = 0.02

    def __post_init__(self, **kwargs: Any) -> None:
        self.head_dim = self.head_dim or self.hidden_size // self.num_attention_heads
        super().__post_init__(**kwargs)

    @property
    def layer_types(self) -> list[str]:
        return ["sliding_attention"] * self.num_hidden_layers


class CodecConfig(PreTrainedConfig):
    model_type = "qwen3_tts_tokenizer_12hz"
    sub_configs: ClassVar[dict[str, type[PreTrainedConfig]]] = {"decoder_config": CodecDecoderConfig}

    encoder_config: dict[str, Any] | None = None
    decoder_config: dict[str, Any] | PreTrainedConfig | None = None
    encoder_valid_num_quantizers: int = 16
    input_sample_rate: int = 24_000
    output_sample_rate: int = 24_000
    decode_upsample_rate: int = 1920
    encode_downsample_rate: int = 1920

    def __post_init__(self, **kwargs: Any) -> None:
        if not isinstance(self.decoder_config, PreTrainedConfig):
            self.decoder_config = CodecDecoderConfig(**(self.decoder_config or {}))
        super().__post_init__(**kwargs)

    @property
    def decoder(self) -> CodecDecoderConfig:
        assert isinstance(self.decoder_config, CodecDecoderConfig)
        return self.decoder_config
