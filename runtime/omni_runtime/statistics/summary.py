"""What a run of requests took as a whole. A frontend prints it for each request, a benchmark for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omni_runtime.statistics.request import RequestStats, StageRequestStats


@dataclass(frozen=True)
class OverallSummary:
    e2e_requests: int
    e2e_wall_time_ms: float
    """From the start of the first to the end of the last."""
    e2e_total_tokens: int
    stage_wall_time_ms: Mapping[str, float]
    """As that of the whole, by stage."""

    @property
    def e2e_avg_time_per_request_ms(self) -> float:
        return self.e2e_wall_time_ms / self.e2e_requests

    @property
    def e2e_avg_tokens_per_s(self) -> float:
        return 1000 * self.e2e_total_tokens / self.e2e_wall_time_ms


def summary_of(requests: Sequence[RequestStats]) -> OverallSummary:
    """Of at least one request, all of them finished."""
    by_stage: dict[str, list[StageRequestStats]] = {}
    for request in requests:
        for stage in request.stages:
            by_stage.setdefault(stage.stage, []).append(stage)
    return OverallSummary(
        e2e_requests=len(requests),
        e2e_wall_time_ms=_span_ms(requests),
        e2e_total_tokens=sum(request.e2e.e2e_total_tokens for request in requests),
        stage_wall_time_ms={name: _span_ms(stages) for name, stages in by_stage.items()},
    )


def _span_ms(parts: Sequence[RequestStats] | Sequence[StageRequestStats]) -> float:
    return 1000 * (max(part.ended_s for part in parts) - min(part.began_s for part in parts))
