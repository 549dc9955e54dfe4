"""Qwen3-Omni: text, pictures, sound and video to text and speech, by a thinker and a talker of experts and a codec."""

from pathlib import Path

from omni_runtime.families.protocol import Report


class Qwen3Omni:
    diffusion = None

    def build_tiny(self, folder: Path, seed: int, report: Report) -> None:
        from omni_runtime.families.qwen3_omni.tiny import build

        build(folder, seed, report)
