"""What a worker is sent to start a stage of a request."""

from collections.abc import Mapping

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.codec import encode
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Value
from omni_runtime.orchestrator.request import SessionRequest
from omni_runtime.orchestrator.steps import EdgePayload, Source, Step


class StartMessages:
    """Makes the start messages of one request; what several stages share is encoded once."""

    def __init__(self, request: SessionRequest) -> None:
        self._request = request
        self._parameters: list[tuple[Mapping[str, Value], bytes]] = []

    def start(self, step: Step, payloads: Mapping[str, EdgePayload], remaining_s: float) -> wire.Start:
        inputs = [_input(edge.name, payloads[edge.name].source) for edge in step.planned.inputs]
        return wire.Start(
            remaining_ms=max(1, int(remaining_s * 1000)),
            inputs=inputs or [wire.Input(edge=FINAL, inline=self._request.encoded_payload)],
            parameters=self._encoded_parameters(step.planned.sampling),
            outputs=step.wanted,
            traceparent=step.span.traceparent,
        )

    def _encoded_parameters(self, sampling: Mapping[str, Value]) -> bytes:
        """Most models have the same defaults for all stages."""
        known = next((encoded for seen, encoded in self._parameters if seen == sampling), None)
        if known is None:
            merged = {**sampling, **self._request.parameters}
            known = encode(merged).to_bytes() if merged else b""
            self._parameters.append((sampling, known))
        return known


def _input(edge: str, source: Source) -> wire.Input:
    if isinstance(source, bytes):
        return wire.Input(edge=edge, inline=source)
    return wire.Input(edge=edge, handle=source)
