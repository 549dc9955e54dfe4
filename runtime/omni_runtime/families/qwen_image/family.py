"""Qwen-Image: text to image by a Qwen2.5-VL text encoder, a dual-stream diffusion transformer and a causal VAE."""

from pathlib import Path

from omni_runtime.families.protocol import Report
from omni_runtime.families.qwen_image.diffusion import QwenImageDiffusion


class QwenImage:
    ar = None
    diffusion = QwenImageDiffusion()
    generation = None
    talker = None

    def build_tiny(self, folder: Path, seed: int, report: Report) -> None:
        from omni_runtime.families.qwen_image.tiny import build

        build(folder, seed, report)
