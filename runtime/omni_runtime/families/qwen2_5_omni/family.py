"""Qwen2.5-Omni: text, pictures, sound and video to text and speech, by a thinker, a talker and a token2wav."""

from pathlib import Path
from typing import TYPE_CHECKING

from omni_runtime.families.protocol import Report
from omni_runtime.families.qwen2_5_omni.ar import Qwen25OmniAr

if TYPE_CHECKING:
    from omni_runtime.generation.decoder import Decoder
    from omni_runtime.stepping.loading import LoadPlan
    from omni_runtime.stepping.resident import Loading
    from omni_runtime.talking.talker import Talker


class Token2WavPart:
    def load(self, plan: "LoadPlan") -> "Loading[Decoder]":
        from omni_runtime.families.qwen2_5_omni.token2wav import load

        return load(plan)


class TalkerPart:
    def load(self, plan: "LoadPlan") -> "Loading[Talker]":
        from omni_runtime.families.qwen2_5_omni.talker import load

        return load(plan)


class Qwen25Omni:
    ar = Qwen25OmniAr()
    diffusion = None
    generation = Token2WavPart()
    talker = TalkerPart()

    def build_tiny(self, folder: Path, seed: int, report: Report) -> None:
        from omni_runtime.families.qwen2_5_omni.tiny import build

        build(folder, seed, report)
