"""A request's statistics from its session and from what the workers told of it."""

from collections.abc import Iterable, Mapping, Sequence

from omni_contract.wire import stage_pb2 as wire
from omni_runtime.orchestrator import Session
from omni_runtime.orchestrator.steps import Step
from omni_runtime.statistics.request import RequestStats, StageRequestStats, TransferEdgeStats, e2e_stats

FINISHED = "finished"
UNTOLD = wire.Measures()
"""Of a worker that is too old to tell."""
KBYTE = 1024


def outcome_of(session: Session) -> str:
    return FINISHED if session.error is None else session.error.code


def stats_of(session: Session) -> RequestStats:
    """Of a session that is over. One that has failed has the stages that had finished."""
    steps = [step for step in session.steps if step.has_worked]
    stages = tuple(_stage(step, session.began_s, session.took_s) for step in steps)
    edges = tuple(_edges(steps))
    return RequestStats(
        request_id=session.request.request_id,
        outcome=outcome_of(session),
        began_s=session.began_s,
        ended_s=session.began_s + session.took_s,
        retries=session.retries,
        e2e=e2e_stats(1000 * session.took_s, stages, edges),
        stages=stages,
        edges=edges,
    )


def in_flight_s(step: Step) -> float:
    """Both ways between frontend and worker: one stands for the way from the producer, which no single clock sees."""
    took_s = (step.measures or UNTOLD).took_us / 1e6
    return max(0.0, step.ended_s - step.sent_s - took_s) if took_s else 0.0


def _stage(step: Step, began_s: float, took_s: float) -> StageRequestStats:
    measures, usage, made = step.measures or UNTOLD, step.usage, step.made
    return StageRequestStats(
        stage=step.name,
        replica=step.replica.name if step.replica else "",
        began_s=step.sent_s,
        ended_s=step.ended_s,
        queue_time_ms=1000 * (step.sent_s - step.fed_s),
        batch_id=measures.batch_id,
        batch_size=measures.batch_size,
        num_tokens_in=usage.input_tokens,
        num_tokens_out=usage.output_tokens,
        stage_gen_time_ms=measures.generation_us / 1000,
        postprocess_time_ms=measures.postprocess_us / 1000,
        image_num=made.images,
        resolution=made.resolution,
        audio_generated_frames=made.audio_frames,
        first_output_ms=1000 * (step.first_s - began_s) if step.first_s else 0.0,
        audio_duration_s=made.audio_s,
        audio_rtf=took_s / made.audio_s if made.audio_s else 0.0,
    )


def _edges(steps: Sequence[Step]) -> Iterable[TransferEdgeStats]:
    """Those whose consumer has finished; what lies on the others may be half read."""
    told = {step.name: {edge.edge: edge for edge in (step.measures or UNTOLD).edges} for step in steps}
    for step in steps:
        for edge in step.planned.inputs:
            yield _edge(edge.name, told.get(edge.source, {}), told[step.name], in_flight_s(step))


def _edge(
    name: str,
    by_producer: Mapping[str, wire.EdgeMeasures],
    by_consumer: Mapping[str, wire.EdgeMeasures],
    in_flight_s: float,
) -> TransferEdgeStats:
    sent, got = by_producer.get(name, wire.EdgeMeasures()), by_consumer.get(name, wire.EdgeMeasures())
    return TransferEdgeStats(
        edge=name,
        size_kbytes=max(sent.size_bytes, got.size_bytes) / KBYTE,
        tx_time_ms=sent.tx_us / 1000,
        rx_decode_time_ms=got.rx_decode_us / 1000,
        in_flight_time_ms=1000 * in_flight_s,
        chunks=max(sent.chunks, got.chunks),
    )
