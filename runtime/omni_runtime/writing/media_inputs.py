"""Prompts with media in the words of a model: its processor, as the checkpoint has it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import AutoProcessor

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.engines.ar.prompts import Prompt
from omni_runtime.writing.resample import resampled

ARGUMENTS = {"image": "images", "audio": "audio", "video": "videos"}
"""What the processor calls media of a modality."""


class MediaInputs:
    """For models whose checkpoint has a processor. `most` is how many of each modality a prompt may have."""

    def __init__(self, folder: Path, most: Mapping[str, int]) -> None:
        self._processor = AutoProcessor.from_pretrained(folder, local_files_only=True)
        self._most = most

    def of(self, prompt: Prompt) -> Mapping[str, Any]:
        """Arguments of the model; OmniError if the processor cannot read the media."""
        for modality, items in prompt.media.items():
            if len(items) > self._most.get(modality, 0):
                text = f"a prompt may have {self._most.get(modality, 0)} of type {modality}, got {len(items)}"
                raise OmniError(ErrorCode.INVALID_REQUEST, text, prompt.param)
        media = {ARGUMENTS[modality]: items for modality, items in prompt.media.items()}
        if "audio" in media:
            media["audio"] = [resampled(samples, rate, self._rate()) for samples, rate in media["audio"]]
        try:
            made = self._processor(text=[prompt.text], return_tensors="pt", **media, **prompt.processor)
        except (TypeError, ValueError, IndexError) as error:
            text = f"the model's processor cannot read this: {error}"
            raise OmniError(ErrorCode.INVALID_REQUEST, text, prompt.param) from error
        with_sound = prompt.processor.get("use_audio_in_video") is True
        return {**made, **({"use_audio_in_video": True} if with_sound else {})}

    def _rate(self) -> int:
        return int(self._processor.feature_extractor.sampling_rate)
