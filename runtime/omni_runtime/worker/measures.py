"""What goes over a stage's edges and what its engine takes: added up for metrics, and for a request that is measured.

Counted with every request, so it is plain arithmetic: no lock, no look-up by label.
"""

from dataclasses import dataclass, field

from omni_contract.wire import stage_pb2 as wire
from omni_runtime.engines.protocol import StageUsage


@dataclass(slots=True)
class Flow:
    """One edge, from the end that is here. Streamed chunks are among the bytes; a stream's reader tells no time."""

    sent: int = 0
    sent_bytes: int = 0
    sent_s: float = 0.0
    got: int = 0
    got_bytes: int = 0
    got_s: float = 0.0
    chunks_sent: int = 0
    chunk_bytes_sent: int = 0
    chunks_got: int = 0
    chunk_bytes_got: int = 0

    def put(self, size_bytes: int, took_s: float) -> None:
        self.sent += 1
        self.sent_bytes += size_bytes
        self.sent_s += took_s

    def take(self, size_bytes: int, took_s: float) -> None:
        self.got += 1
        self.got_bytes += size_bytes
        self.got_s += took_s

    def put_chunk(self, size_bytes: int, took_s: float) -> None:
        self.put(size_bytes, took_s)
        self.chunks_sent += 1
        self.chunk_bytes_sent += size_bytes

    def take_chunk(self, size_bytes: int) -> None:
        self.got_bytes += size_bytes
        self.chunks_got += 1
        self.chunk_bytes_got += size_bytes


@dataclass(slots=True)
class Work:
    """Of all requests that have finished here."""

    requests: int = 0
    generation_s: float = 0.0
    postprocess_s: float = 0.0
    in_batches: int = 0
    """The sum over requests of how many their batch had."""
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, usage: StageUsage, engine_s: float) -> None:
        """`engine_s` with the post-processing."""
        self.requests += 1
        self.generation_s += engine_s - usage.postprocess_seconds
        self.postprocess_s += usage.postprocess_seconds
        self.in_batches += usage.batch_size
        self.tokens_in += usage.input_tokens
        self.tokens_out += usage.output_tokens


@dataclass(slots=True)
class Measures:
    """Of one attempt whose frontend asked for it. Neither the client's request nor the final output is an edge."""

    flows: dict[str, Flow] = field(default_factory=dict)

    def flow(self, edge: str) -> Flow:
        return self.flows.setdefault(edge, Flow())

    def fill(self, message: wire.Measures, usage: StageUsage, engine_s: float, batch_id: int) -> None:
        message.generation_us = microseconds(engine_s - usage.postprocess_seconds)
        message.postprocess_us = microseconds(usage.postprocess_seconds)
        message.batch_id = batch_id
        message.batch_size = usage.batch_size
        for edge, flow in self.flows.items():
            message.edges.add(
                edge=edge,
                size_bytes=flow.sent_bytes + flow.got_bytes,
                tx_us=microseconds(flow.sent_s),
                rx_decode_us=microseconds(flow.got_s),
                chunks=flow.chunks_sent + flow.chunks_got,
            )


def microseconds(seconds: float) -> int:
    return max(0, int(seconds * 1e6))
