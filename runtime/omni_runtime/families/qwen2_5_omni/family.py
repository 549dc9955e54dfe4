"""Qwen2.5-Omni: text, pictures, sound and video to text and speech, by a thinker, a talker and a token2wav."""

from pathlib import Path

from omni_runtime.families.protocol import Report


class Qwen25Omni:
    diffusion = None

    def build_tiny(self, folder: Path, seed: int, report: Report) -> None:
        from omni_runtime.families.qwen2_5_omni.tiny import build

        build(folder, seed, report)
