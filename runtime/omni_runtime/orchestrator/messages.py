"""What a worker is sent to start a stage of a request."""

from collections.abc import Iterator, Mapping

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.codec import encode
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Value
from omni_runtime.orchestrator.request import SessionRequest
from omni_runtime.orchestrator.steps import EdgePayload, Source, Step

PART_BYTES = 2 * 2**20
"""Of a client's input in one message, so that no message gets near its limit."""


class StartMessages:
    """What the start messages of one request say; what several stages share is encoded once."""

    def __init__(self, request: SessionRequest) -> None:
        self._request = request
        self._of_all, self._of_one = split_by_stage(request.parameters)
        self._parameters: list[tuple[Mapping[str, Value], bytes]] = []

    def parts_ahead(self, step: Step) -> Iterator[bytes]:
        """Of a client's input that is too large for one message: all but its last part, to be sent before the start."""
        if not step.planned.inputs:
            encoded = self._request.encoded_payload
            for start in range(0, _last_part(encoded), PART_BYTES):
                yield encoded[start : start + PART_BYTES]

    def fill(self, start: wire.Start, step: Step, payloads: Mapping[str, EdgePayload], remaining_s: float) -> int:
        """Says all of it. About how many bytes that takes in the message; names and handles are small."""
        start.remaining_ms = max(1, int(remaining_s * 1000))
        size_bytes = 0
        for edge in step.planned.inputs:
            size_bytes += _add(start, edge.name, payloads[edge.name].source)
        if not step.planned.inputs:
            encoded = self._request.encoded_payload
            size_bytes = _add(start, FINAL, encoded[_last_part(encoded) :])
        start.outputs.extend(step.wanted)
        if parameters := self._encoded_parameters(step.name, step.planned.sampling):
            start.parameters = parameters
        if traceparent := step.span.traceparent:
            start.traceparent = traceparent
        return size_bytes + len(parameters)

    def _encoded_parameters(self, stage: str, sampling: Mapping[str, Value]) -> bytes:
        """Most models have the same defaults for all stages, and most requests ask the same of all."""
        if not sampling and not self._request.parameters:
            return b""
        asked = {**sampling, **self._of_all, **self._of_one.get(stage, {})}
        if not asked:
            return b""
        known = next((encoded for seen, encoded in self._parameters if seen == asked), None)
        if known is None:
            known = encode(asked).to_bytes()
            self._parameters.append((asked, known))
        return known


def split_by_stage(parameters: Mapping[str, Value]) -> tuple[Mapping[str, Value], Mapping[str, Mapping[str, Value]]]:
    """What every stage gets, and what "STAGE.NAME" gives one stage alone; the latter wins there."""
    of_all: dict[str, Value] = {}
    of_one: dict[str, dict[str, Value]] = {}
    for key, value in parameters.items():
        stage, dot, name = key.partition(".")
        if dot:
            of_one.setdefault(stage, {})[name] = value
        else:
            of_all[key] = value
    return of_all, of_one


def _last_part(encoded: bytes) -> int:
    """Where it begins."""
    return max(0, len(encoded) - 1) // PART_BYTES * PART_BYTES


def _add(start: wire.Start, edge: str, source: Source) -> int:
    if isinstance(source, bytes):
        start.inputs.add(edge=edge, inline=source)
        return len(source)
    start.inputs.add(edge=edge, handle=source)
    return 0
