"""The stage graph of each family, as data. A new family adds a file and a line here."""

from omni_contract.presets.preset import ParameterKind, Preset
from omni_contract.presets.qwen2_5_omni import QWEN2_5_OMNI
from omni_contract.presets.qwen3_omni import QWEN3_OMNI
from omni_contract.presets.qwen3_tts import QWEN3_TTS
from omni_contract.presets.qwen_image import QWEN_IMAGE

PRESETS: dict[str, Preset] = {preset.family: preset for preset in (QWEN_IMAGE, QWEN2_5_OMNI, QWEN3_OMNI, QWEN3_TTS)}

__all__ = ["PRESETS", "ParameterKind", "Preset"]
