"""Qwen3-Omni: text, pictures, sound and video to text and speech, by a thinker and a talker of experts and a codec."""

from pathlib import Path
from typing import TYPE_CHECKING

from omni_runtime.families.protocol import Report
from omni_runtime.families.qwen3_omni.ar import Qwen3OmniAr

if TYPE_CHECKING:
    from omni_runtime.generation.decoder import Decoder
    from omni_runtime.stepping.loading import LoadPlan
    from omni_runtime.stepping.resident import Loading


class Code2WavPart:
    def load(self, plan: "LoadPlan") -> "Loading[Decoder]":
        from omni_runtime.families.qwen3_omni.code2wav import load

        return load(plan)


class Qwen3Omni:
    ar = Qwen3OmniAr()
    diffusion = None
    generation = Code2WavPart()
    talker = None

    def build_tiny(self, folder: Path, seed: int, report: Report) -> None:
        from omni_runtime.families.qwen3_omni.tiny import build

        build(folder, seed, report)
