"""What one request took: in all, at each stage and over each edge. Values and formulas, nothing else.

Names and formulas are those of vLLM-Omni's statistics, so that its readers find what they know. Times are milliseconds,
a kbyte has 1,024 bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StageRequestStats:
    """`began_s` and `ended_s` are when the frontend sent it to a worker and heard of its end, by one clock.

    `queue_time_ms` is how long it waited for a replica before that.
    """

    stage: str
    replica: str
    began_s: float
    ended_s: float
    queue_time_ms: float = 0.0
    batch_id: int = 0
    batch_size: int = 1
    num_tokens_in: int = 0
    num_tokens_out: int = 0
    stage_gen_time_ms: float = 0.0
    """Without post-processing."""
    postprocess_time_ms: float = 0.0
    image_num: int = 0
    resolution: str = ""
    audio_generated_frames: int = 0
    """Samples of each channel."""
    first_output_ms: float = 0.0
    """From the request's start to the first of the stage's final output: TTFT of text, TTFP of audio."""
    audio_duration_s: float = 0.0
    audio_rtf: float = 0.0
    """The request's time over its audio's: below 1 it is made faster than it plays."""

    @property
    def wall_time_ms(self) -> float:
        return 1000 * (self.ended_s - self.began_s)


@dataclass(frozen=True)
class TransferEdgeStats:
    """One edge, "FROM->TO". Of a stream, `chunks` counts them and nothing is said of `rx_decode_time_ms`."""

    edge: str
    size_kbytes: float
    tx_time_ms: float
    """The producer's, to put it."""
    rx_decode_time_ms: float
    """The consumer's, to get and decode it."""
    in_flight_time_ms: float
    """What the frontend waited for the consumer, beyond what the consumer took: messages on their way."""
    chunks: int = 0

    @property
    def total_time_ms(self) -> float:
        return self.tx_time_ms + self.rx_decode_time_ms + self.in_flight_time_ms


@dataclass(frozen=True)
class RequestE2EStats:
    e2e_total_ms: float
    e2e_total_tokens: int
    """What the first stage read and all stages made."""
    transfers_total_time_ms: float
    transfers_total_kbytes: float


@dataclass(frozen=True)
class RequestStats:
    """Stages in the order in which they feed each other. `outcome` is "finished" or an error code."""

    request_id: str
    outcome: str
    began_s: float
    ended_s: float
    retries: int
    e2e: RequestE2EStats
    stages: tuple[StageRequestStats, ...]
    edges: tuple[TransferEdgeStats, ...]


def e2e_stats(
    total_ms: float, stages: Sequence[StageRequestStats], edges: Sequence[TransferEdgeStats]
) -> RequestE2EStats:
    return RequestE2EStats(
        e2e_total_ms=total_ms,
        e2e_total_tokens=total_tokens(stages),
        transfers_total_time_ms=sum(edge.total_time_ms for edge in edges),
        transfers_total_kbytes=sum(edge.size_kbytes for edge in edges),
    )


def total_tokens(stages: Sequence[StageRequestStats]) -> int:
    read = stages[0].num_tokens_in if stages else 0
    return read + sum(stage.num_tokens_out for stage in stages)
