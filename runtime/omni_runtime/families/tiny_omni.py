"""Tokenizer, chat template and processor parts of the tiny omni checkpoints; only the names of their tokens differ."""

from dataclasses import asdict, dataclass

from transformers import Qwen2Tokenizer, Qwen2VLVideoProcessor, WhisperFeatureExtractor
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

from omni_runtime.families.tiny_tokenizer import train_tokenizer

TEXT_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>")
ROLES = ("system", "user", "assistant")
"""The models' configurations know each by one token."""
MAX_PATCHES = 16


@dataclass(frozen=True)
class MediaTokens:
    """What stands for media in a prompt, under the names that the processors ask the tokenizer for."""

    image_token: str
    audio_token: str
    video_token: str
    vision_bos_token: str
    vision_eos_token: str
    audio_bos_token: str
    audio_eos_token: str


def omni_tokenizer(media: MediaTokens) -> Qwen2Tokenizer:
    named: dict[str, str] = asdict(media)
    tokenizer = train_tokenizer((*TEXT_TOKENS, *named.values()), named, ROLES)
    tokenizer.chat_template = chat_template(media)
    return tokenizer


def chat_template(media: MediaTokens) -> str:
    """As the published ones: turns between `<|im_start|>` and `<|im_end|>`, media in the order of the parts."""
    vision = f"{media.vision_bos_token}%s{media.vision_eos_token}"
    return (
        "{% if messages[0]['role'] != 'system' %}"
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
        "{% endif %}"
        "{% if tools %}"
        "<|im_start|>system\n# Tools\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n"
        "{% endif %}"
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
        "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
        "{% for part in message['content'] or [] %}"
        f"{{% if part['type'] in ('image', 'image_url') %}}{vision % media.image_token}"
        "{% elif part['type'] in ('audio', 'input_audio') %}"
        f"{media.audio_bos_token}{media.audio_token}{media.audio_eos_token}"
        f"{{% elif part['type'] in ('video', 'video_url') %}}{vision % media.video_token}"
        "{% elif 'text' in part %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


def image_processor(patch_size: int) -> Qwen2VLImageProcessor:
    side = 2 * patch_size
    return Qwen2VLImageProcessor(patch_size=patch_size, min_pixels=side**2, max_pixels=MAX_PATCHES * side**2)


def video_processor(patch_size: int) -> Qwen2VLVideoProcessor:
    side = 2 * patch_size
    return Qwen2VLVideoProcessor(patch_size=patch_size, min_pixels=side**2, max_pixels=MAX_PATCHES * side**2)


def feature_extractor() -> WhisperFeatureExtractor:
    return WhisperFeatureExtractor(
        feature_size=128, sampling_rate=16_000, hop_length=160, n_fft=400, chunk_length=30, return_attention_mask=True
    )
