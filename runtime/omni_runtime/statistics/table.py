"""The tables of `--log-stats`: a summary, and a request with its stages and edges as columns. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from omni_runtime.statistics.request import RequestStats, StageRequestStats, TransferEdgeStats
from omni_runtime.statistics.summary import OverallSummary, summary_of

Cell: TypeAlias = str | int | float
Rows: TypeAlias = Mapping[str, Sequence[Cell]]

ALWAYS: Mapping[str, Callable[[StageRequestStats], Cell]] = {
    "batch_id": lambda stage: stage.batch_id,
    "batch_size": lambda stage: stage.batch_size,
    "num_tokens_in": lambda stage: stage.num_tokens_in,
    "num_tokens_out": lambda stage: stage.num_tokens_out,
    "postprocess_time_ms": lambda stage: stage.postprocess_time_ms,
    "stage_gen_time_ms": lambda stage: stage.stage_gen_time_ms,
}
IF_ANY: Mapping[str, Callable[[StageRequestStats], Cell]] = {
    "audio_duration_s": lambda stage: stage.audio_duration_s,
    "audio_generated_frames": lambda stage: stage.audio_generated_frames,
    "audio_rtf": lambda stage: stage.audio_rtf,
    "first_output_ms": lambda stage: stage.first_output_ms,
    "image_num": lambda stage: stage.image_num,
    "resolution": lambda stage: stage.resolution,
}
"""Rows of what only some stages make."""
OF_EDGE: Mapping[str, Callable[[TransferEdgeStats], Cell]] = {
    "in_flight_time_ms": lambda edge: edge.in_flight_time_ms,
    "rx_decode_time_ms": lambda edge: edge.rx_decode_time_ms,
    "size_kbytes": lambda edge: edge.size_kbytes,
    "tx_time_ms": lambda edge: edge.tx_time_ms,
}


def request_table(request: RequestStats) -> str:
    """All tables of one finished request, under each other."""
    name = f"[request_id={request.request_id}]"
    parts = [
        table("Overall Summary", ["Value"], _of_summary(summary_of([request]))),
        table(f"RequestE2EStats {name}", ["Value"], _of_request(request)),
        table(f"StageRequestStats {name}", [stage.stage for stage in request.stages], _of_stages(request.stages)),
    ]
    if request.edges:
        edges = {row: [cell(edge) for edge in request.edges] for row, cell in OF_EDGE.items()}
        parts.append(table(f"TransferEdgeStats {name}", [edge.edge for edge in request.edges], edges))
    return "\n\n".join(parts)


def table(title: str, columns: Sequence[str], rows: Rows) -> str:
    """A frame of +, - and |: names to the left, figures to the right."""
    lines = [["Field", *columns], *([name, *map(_text, cells)] for name, cells in rows.items())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "+".join(["", *("-" * (width + 2) for width in widths), ""])
    head, *body = (_line(line, widths) for line in lines)
    return "\n".join([f"[{title}]", rule, head, rule, *body, rule])


def _of_summary(summary: OverallSummary) -> Rows:
    walls = {f"e2e_stage_{name}_wall_time_ms": [took_ms] for name, took_ms in summary.stage_wall_time_ms.items()}
    return {
        "e2e_requests": [summary.e2e_requests],
        "e2e_wall_time_ms": [summary.e2e_wall_time_ms],
        "e2e_total_tokens": [summary.e2e_total_tokens],
        "e2e_avg_time_per_request_ms": [summary.e2e_avg_time_per_request_ms],
        "e2e_avg_tokens_per_s": [summary.e2e_avg_tokens_per_s],
        **walls,
    }


def _of_request(request: RequestStats) -> Rows:
    return {
        "e2e_total_ms": [request.e2e.e2e_total_ms],
        "e2e_total_tokens": [request.e2e.e2e_total_tokens],
        "transfers_total_time_ms": [request.e2e.transfers_total_time_ms],
        "transfers_total_kbytes": [request.e2e.transfers_total_kbytes],
    }


def _of_stages(stages: Sequence[StageRequestStats]) -> Rows:
    return dict(sorted(_stage_rows(stages)))


def _stage_rows(stages: Sequence[StageRequestStats]) -> Iterator[tuple[str, Sequence[Cell]]]:
    for name, cell in ALWAYS.items():
        yield name, [cell(stage) for stage in stages]
    for name, cell in IF_ANY.items():
        if any(cells := [cell(stage) for stage in stages]):
            yield name, cells


def _text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell:,.3f}" if isinstance(cell, float) else f"{cell:,}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *figures = (
        f"{cell:>{width}}" if number else f"{cell:<{width}}"
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"| {' | '.join([name, *figures])} |"
