"""A reference's sound as the speaker encoder takes it in. Pure."""

import torch
from transformers.audio_utils import mel_filter_bank

FRAME, HOP, BANDS, HIGHEST_HZ = 1024, 256, 128, 12_000
LEAST_MAGNITUDE, LEAST_MEL = 1e-9, 1e-5


def mel_of(sound: torch.Tensor, sample_rate: int) -> torch.Tensor:
    """Of shape (1, frames, bands)."""
    filters = mel_filter_bank(FRAME // 2 + 1, BANDS, 0, HIGHEST_HZ, sample_rate, norm="slaney", mel_scale="slaney")
    edge = (FRAME - HOP) // 2
    padded = torch.nn.functional.pad(sound[None, None], (edge, edge), mode="reflect")[0]
    spectrum = torch.stft(
        padded, FRAME, HOP, FRAME, torch.hann_window(FRAME, device=sound.device), center=False, return_complex=True
    )
    magnitudes = torch.sqrt(torch.view_as_real(spectrum).pow(2).sum(-1) + LEAST_MAGNITUDE)
    mel = torch.from_numpy(filters).to(magnitudes).T @ magnitudes
    return mel.clamp(min=LEAST_MEL).log().transpose(1, 2)
