"""What a family's codec offers the generation engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from omni_contract.wire.payload import Value
from omni_runtime.stepping.resident import StageModel

if TYPE_CHECKING:
    import torch


class Stream(Protocol):
    """One request in a decoder: what later steps need of those before."""

    @property
    def batch_key(self) -> str:
        """Streams of one key may share the next step."""
        ...

    def has_work(self, waiting: int, is_ended: bool) -> bool:
        """Whether a step would get it further, with so many frames that wait and no more to come if it is ended."""
        ...


@dataclass(frozen=True)
class Turn:
    """A stream's part of a step. `codes` are its next frames, integers of shape (groups, frames), if there are any.

    The first `lead_in` of them make no samples; only codecs whose talkers send such frames are given any.
    """

    stream: Any
    codes: "torch.Tensor | None"
    lead_in: int = 0


class Decoder(StageModel, Protocol):
    """Steps and the making of streams happen on the step thread."""

    @property
    def sample_rate(self) -> int: ...

    @property
    def code_groups(self) -> int: ...

    @property
    def codebook_size(self) -> int: ...

    @property
    def frames_per_step(self) -> int | None:
        """Most frames of one stream that a step takes; None if it takes whatever there is."""
        ...

    def begin(self, parameters: Mapping[str, Value]) -> Stream:
        """Raises OmniError naming the parameter that it cannot use."""
        ...

    def step(self, turns: Sequence[Turn]) -> Sequence["torch.Tensor | None"]:
        """Samples that each stream got, float32 on the CPU, or None. If it raises, all streams are as before."""
        ...
