"""What requests took, for Prometheus: in all, and at each stage and edge as the frontend sees it."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from omni_contract.wire import names
from omni_runtime.orchestrator import Session
from omni_runtime.orchestrator.steps import Step
from omni_runtime.statistics.of_session import FINISHED, in_flight_s, outcome_of
from omni_runtime.statistics.tallies import Sums, Tally

SECONDS = (0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)


class SessionMetrics:
    """Is told of each session that is over; only those that have finished count for more than their outcome."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def tally(name: str, text: str, *labels: str) -> Tally:
            return Tally(name, text, labels, registry)

        def sums(name: str, text: str, *labels: str) -> Sums:
            return Sums(name, text, labels, registry)

        self._requests = tally(names.FRONTEND_E2E_REQUESTS, "Sessions that are over, by outcome.", "outcome")
        self._seconds = Histogram(
            names.FRONTEND_E2E_SECONDS, "Of finished sessions.", buckets=SECONDS, registry=registry
        )
        self._tokens = Counter(names.FRONTEND_E2E_TOKENS, "Read by first stages, made by all.", registry=registry)
        self._wall = sums(names.FRONTEND_STAGE_WALL_SECONDS, "From sent to a worker to its end there.", "stage")
        self._queue = sums(names.FRONTEND_STAGE_QUEUE_SECONDS, "Waited for a replica.", "stage")
        self._compute = sums(names.FRONTEND_STAGE_COMPUTE_SECONDS, "Engine time, as workers bill it.", "stage")
        self._stage_tokens = tally(names.FRONTEND_STAGE_TOKENS, "Read (in) and made (out).", "stage", "direction")
        self._images = tally(names.FRONTEND_IMAGES, "Pictures answered.", "stage")
        self._frames = tally(names.FRONTEND_AUDIO_FRAMES, "Samples per channel answered.", "stage")
        self._audio_s = tally(names.FRONTEND_AUDIO_SECONDS, "Sound answered.", "stage")
        self._first = sums(names.FRONTEND_FIRST_OUTPUT_SECONDS, "Until the first of a final output.", "stage")
        self._in_flight = sums(names.FRONTEND_EDGE_IN_FLIGHT_SECONDS, "Messages on their way.", "edge")

    def session_ended(self, session: Session) -> None:
        outcome = outcome_of(session)
        self._requests.counts[outcome,] += 1
        if outcome != FINISHED:
            return
        self._seconds.observe(session.took_s)
        steps = list(session.steps)
        self._tokens.inc(steps[0].usage.input_tokens + sum(step.usage.output_tokens for step in steps))
        for step in steps:
            if step.has_worked:
                self._count(step)
            if step.first_s:
                self._first.add((step.name,), step.first_s - session.began_s)

    def _count(self, step: Step) -> None:
        stage, usage = (step.name,), step.usage
        self._wall.add(stage, step.ended_s - step.sent_s)
        self._queue.add(stage, step.sent_s - step.fed_s)
        self._compute.add(stage, usage.compute_seconds)
        self._stage_tokens.counts[step.name, "in"] += usage.input_tokens
        self._stage_tokens.counts[step.name, "out"] += usage.output_tokens
        if step.planned.modality is not None:
            self._images.counts[stage] += step.made.images
            self._frames.counts[stage] += step.made.audio_frames
            self._audio_s.counts[stage] += step.made.audio_s
        for edge in step.planned.inputs if step.measures else ():
            self._in_flight.add((edge.name,), in_flight_s(step))
