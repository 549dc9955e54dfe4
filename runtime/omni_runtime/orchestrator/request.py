"""What a caller of the orchestrator hands in and gets back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

from omni_contract.wire.codec import CodecError, encode
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload, Value
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.orchestrator.work import Kind, kind_of


class SharedPayload(dict[str, Value]):
    """What several requests have in common, with media in it: encoded once for all of them."""

    @cached_property
    def encoded(self) -> bytes:
        return encode(self).to_bytes()


@dataclass(frozen=True)
class SessionRequest:
    """One request for one answer.

    `request_id` is unique among all frontends. `parameters` override the stage table's sampling defaults; "STAGE.NAME"
    does so for one stage. `modalities` names the outputs wanted; empty means every final output. `timeout_s` None
    means the model's request timeout. Tenants take turns in a queue; `priority` orders the requests of one tenant, the
    least first. Requests of one `affinity` key go to the same replicas as long as they need not wait for them. With
    `takes_what_is_left`, a stage that fails costs the outputs that need it, not the others.
    """

    request_id: str
    payload: Payload
    parameters: Mapping[str, Value] = field(default_factory=dict)
    modalities: tuple[str, ...] = ()
    timeout_s: float | None = None
    traceparent: str = ""
    tenant: str = ""
    priority: int = 0
    affinity: str = ""
    takes_what_is_left: bool = False

    @cached_property
    def kind(self) -> Kind:
        """Requests of one kind take about as long."""
        return kind_of(self.payload, self.parameters)

    @cached_property
    def encoded_payload(self) -> bytes:
        if isinstance(self.payload, SharedPayload):
            return self.payload.encoded
        return encode(self.payload).to_bytes()

    def check_payload(self, largest_bytes: int) -> None:
        """Raises OmniError for an input that no stage would take."""
        try:
            size_bytes = len(self.encoded_payload)
        except CodecError as exc:
            text = f"the request cannot be handed to a stage: {exc}"
            raise OmniError(ErrorCode.INVALID_REQUEST, text) from exc
        if size_bytes > largest_bytes:
            text = (
                f"the request's input has {size_bytes:,} bytes, its media decoded; a stage takes at most "
                f"{largest_bytes:,}: send fewer, shorter or smaller media"
            )
            raise OmniError(ErrorCode.PAYLOAD_TOO_LARGE, text)


class StageUsage(NamedTuple):
    """What one stage reported that it took to answer."""

    input_tokens: int = 0
    output_tokens: int = 0
    steps: int = 0
    compute_seconds: float = 0.0


class Progress(NamedTuple):
    stage: str
    step: int
    total: int


class Announced(NamedTuple):
    """A final output, or a part of one, that a stage has announced and the session has not read yet."""

    stage: str
    attempt: int
    source: bytes | Handle
    more: bool = False
    """Further parts follow."""


class FinalOutput(NamedTuple):
    """A final output of a stage, for the client."""

    stage: str
    modality: str
    payload: Payload


class FinalChunk(NamedTuple):
    """A part of a final output that its stage makes bit by bit. The last part may have no items."""

    stage: str
    modality: str
    items: tuple[Payload, ...]
    is_last: bool


@dataclass(frozen=True)
class OutputLost:
    """A final output that will not come, or not to its end, while others do."""

    modality: str
    error: OmniError


class Completed(NamedTuple):
    """Comes last when all went well: what each stage took, and which replica served it."""

    usage: Mapping[str, StageUsage]
    replicas: Mapping[str, str]


SessionEvent: TypeAlias = Progress | FinalOutput | FinalChunk | OutputLost | Completed


@dataclass(frozen=True)
class SessionResult:
    """All that one session gave, for callers that do not stream."""

    outputs: tuple[FinalOutput, ...]
    chunks: tuple[FinalChunk, ...]
    usage: Mapping[str, StageUsage]
    replicas: Mapping[str, str]
