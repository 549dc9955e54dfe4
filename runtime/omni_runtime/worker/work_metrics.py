"""Prometheus series of what a worker's edges carried and its engine took, read when they are scraped."""

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric, SummaryMetricFamily

from omni_contract.wire import names
from omni_runtime.worker.measures import Flow, Work

WAYS = ("edge", "direction")


class WorkMetrics:
    """`flows` has an entry for each label that there may ever be."""

    def __init__(self, work: Work, flows: Mapping[str, Flow], registry: CollectorRegistry) -> None:
        self._work = work
        self._flows = flows
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        yield from self._of_work()
        yield from self._of_edges()
        yield from self._of_streams()

    def _of_work(self) -> Iterator[Metric]:
        work = self._work
        text = "A finished request's time in the engine, without post-processing."
        yield _summary(names.WORKER_GENERATION_SECONDS, text, work.requests, work.generation_s)
        text = "What the engine did to a result that the model had made."
        yield _summary(names.WORKER_POSTPROCESS_SECONDS, text, work.requests, work.postprocess_s)
        text = "Requests in a finished request's batch."
        yield _summary(names.WORKER_BATCH_SIZE, text, work.requests, work.in_batches)
        tokens = CounterMetricFamily(names.WORKER_TOKENS, "Tokens read (in) and made (out).", labels=["direction"])
        tokens.add_metric(["in"], work.tokens_in)
        tokens.add_metric(["out"], work.tokens_out)
        yield tokens

    def _of_edges(self) -> Iterator[Metric]:
        moved = CounterMetricFamily(names.WORKER_TRANSFER_BYTES, "Payload bytes got (in) and put (out).", labels=WAYS)
        sent = SummaryMetricFamily(names.WORKER_EDGE_TX_SECONDS, "To put a payload or a chunk.", labels=["edge"])
        text = "To get and decode a whole payload."
        got = SummaryMetricFamily(names.WORKER_EDGE_RX_DECODE_SECONDS, text, labels=["edge"])
        for edge, flow in self._flows.items():
            if flow.sent:
                moved.add_metric([edge, "out"], flow.sent_bytes)
                sent.add_metric([edge], flow.sent, flow.sent_s)
            if flow.got or flow.chunks_got:
                moved.add_metric([edge, "in"], flow.got_bytes)
                got.add_metric([edge], flow.got, flow.got_s)
        yield from (moved, sent, got)

    def _of_streams(self) -> Iterator[Metric]:
        size = CounterMetricFamily(names.WORKER_STREAM_BYTES, "Bytes of streamed chunks.", labels=WAYS)
        chunks = CounterMetricFamily(names.WORKER_STREAM_CHUNKS, "Streamed chunks.", labels=WAYS)
        for edge, flow in self._flows.items():
            if flow.chunks_sent:
                size.add_metric([edge, "out"], flow.chunk_bytes_sent)
                chunks.add_metric([edge, "out"], flow.chunks_sent)
            if flow.chunks_got:
                size.add_metric([edge, "in"], flow.chunk_bytes_got)
                chunks.add_metric([edge, "in"], flow.chunks_got)
        yield from (size, chunks)


def _summary(name: str, text: str, count: int, total: float) -> SummaryMetricFamily:
    return SummaryMetricFamily(name, text, count_value=count, sum_value=total)
