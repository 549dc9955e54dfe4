"""What one request took, as its client saw it."""

from dataclasses import dataclass, field
from itertools import pairwise


@dataclass
class Outcome:
    """Times are seconds from when the request was sent, but `sent_s`, which is from the beginning of the run."""

    sent_s: float
    latency_s: float = 0.0
    error: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    """As the server says; chunks of text if it says nothing."""
    text: str = ""
    text_at_s: list[float] = field(default_factory=list)
    """When each chunk of text came."""
    audio_at_s: float | None = None
    """When the first sound came."""
    audio_s: float = 0.0
    audio_frames: int = 0
    images: int = 0
    slo_s: float | None = None

    @property
    def is_ok(self) -> bool:
        return not self.error

    @property
    def ttft_s(self) -> float | None:
        """Time to the first token."""
        return self.text_at_s[0] if self.text_at_s else None

    @property
    def tpot_s(self) -> float | None:
        """Time for each token after the first. Sound that goes on after the text does not count."""
        if self.output_tokens < 2 or len(self.text_at_s) < 2:
            return None
        return (self.text_at_s[-1] - self.text_at_s[0]) / (self.output_tokens - 1)

    @property
    def itl_s(self) -> list[float]:
        """Times between chunks of text."""
        return [later - earlier for earlier, later in pairwise(self.text_at_s)]

    @property
    def audio_rtf(self) -> float | None:
        """How much longer than the sound itself it took to have it all."""
        return self.latency_s / self.audio_s if self.audio_s else None

    @property
    def has_met_slo(self) -> bool:
        return self.is_ok and (self.slo_s is None or self.latency_s <= self.slo_s)
