"""Requests whose figures are known."""

from typing import Any

from omni_runtime.statistics.request import RequestStats, StageRequestStats, TransferEdgeStats, e2e_stats


def stage(name: str = "denoiser", began_s: float = 0.0, ended_s: float = 1.0, **fields: Any) -> StageRequestStats:
    return StageRequestStats(name, f"{name}-0", began_s, ended_s, **fields)


def request(
    stages: tuple[StageRequestStats, ...] = (),
    edges: tuple[TransferEdgeStats, ...] = (),
    total_ms: float = 1000.0,
    **fields: Any,
) -> RequestStats:
    known = {"request_id": "r-1", "outcome": "finished", "began_s": 0.0, "ended_s": 1.0, "retries": 0}
    return RequestStats(**{**known, **fields}, e2e=e2e_stats(total_ms, stages, edges), stages=stages, edges=edges)


def worked_example() -> RequestStats:
    """One picture asked of Qwen3-Omni-30B-A3B, of the source's documentation.

    It prints figures of three digits, and sums of figures with more: the sums of what it prints are off by one in the
    last. So what is given here has the digit that it must have had; the sizes are whole bytes.
    """
    return request(
        stages=(
            stage(
                "0",
                0.0,
                10.192289,
                batch_id=38,
                num_tokens_in=4860,
                num_tokens_out=67,
                stage_gen_time_ms=9910.007,
                postprocess_time_ms=256.158,
            ),
            stage(
                "1",
                10.2,
                40.741409,
                batch_id=274,
                num_tokens_in=4826,
                num_tokens_out=275,
                stage_gen_time_ms=30379.198,
                postprocess_time_ms=0.491,
            ),
            stage("2", 41.0, 41.207496, num_tokens_in=4384, stage_gen_time_ms=160.745, audio_generated_frames=525525),
        ),
        edges=(
            TransferEdgeStats("0->1", 111_900_005 / 1024, 78.7008, 111.8648, 2.015),
            TransferEdgeStats("1->2", 29_504_093 / 1024, 18.7899, 31.7058, 2.8189),
        ),
        total_ms=41299.133,
        ended_s=41.29919,
        request_id="0_b6f2",
    )
