"""Qwen3-TTS: text to speech in a voice of its own, by a talker with a code predictor and a 12 Hz codec."""

from pathlib import Path
from typing import TYPE_CHECKING

from omni_runtime.families.protocol import Report

if TYPE_CHECKING:
    from omni_runtime.generation.decoder import Decoder
    from omni_runtime.stepping.loading import LoadPlan
    from omni_runtime.stepping.resident import Loading
    from omni_runtime.talking.talker import Talker


class Code2WavPart:
    def load(self, plan: "LoadPlan") -> "Loading[Decoder]":
        from omni_runtime.families.qwen3_tts.code2wav import load

        return load(plan)


class TalkerPart:
    def load(self, plan: "LoadPlan") -> "Loading[Talker]":
        from omni_runtime.families.qwen3_tts.talker import load

        return load(plan)


class Qwen3TTS:
    ar = None
    diffusion = None
    generation = Code2WavPart()
    talker = TalkerPart()

    variants = ("CustomVoice", "VoiceDesign", "Base")

    def build_tiny(self, folder: Path, seed: int, report: Report) -> None:
        self.build_tiny_variant(self.variants[0], folder, seed, report)

    def build_tiny_variant(self, variant: str, folder: Path, seed: int, report: Report) -> None:
        from omni_runtime.families.qwen3_tts.order import TASKS
        from omni_runtime.families.qwen3_tts.tiny import build

        [kind] = (kind for kind, task in TASKS.items() if task == variant)
        build(folder, seed, report, kind)
