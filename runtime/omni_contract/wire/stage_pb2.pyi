from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKER_STATE_UNSPECIFIED: _ClassVar[WorkerState]
    WORKER_STATE_LOADING: _ClassVar[WorkerState]
    WORKER_STATE_READY: _ClassVar[WorkerState]
    WORKER_STATE_DRAINING: _ClassVar[WorkerState]
    WORKER_STATE_ASLEEP: _ClassVar[WorkerState]

class HandleKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HANDLE_KIND_UNSPECIFIED: _ClassVar[HandleKind]
    HANDLE_KIND_OBJECT: _ClassVar[HandleKind]
    HANDLE_KIND_STREAM: _ClassVar[HandleKind]
WORKER_STATE_UNSPECIFIED: WorkerState
WORKER_STATE_LOADING: WorkerState
WORKER_STATE_READY: WorkerState
WORKER_STATE_DRAINING: WorkerState
WORKER_STATE_ASLEEP: WorkerState
HANDLE_KIND_UNSPECIFIED: HandleKind
HANDLE_KIND_OBJECT: HandleKind
HANDLE_KIND_STREAM: HandleKind

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WorkerInfo(_message.Message):
    __slots__ = ("model", "stage", "revision", "boot_id", "replica", "max_in_flight", "inputs", "outputs", "connectors", "state", "locality")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    CONNECTORS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LOCALITY_FIELD_NUMBER: _ClassVar[int]
    model: str
    stage: str
    revision: str
    boot_id: str
    replica: str
    max_in_flight: int
    inputs: _containers.RepeatedCompositeFieldContainer[EdgeContract]
    outputs: _containers.RepeatedCompositeFieldContainer[EdgeContract]
    connectors: _containers.RepeatedScalarFieldContainer[str]
    state: WorkerState
    locality: str
    def __init__(self, model: _Optional[str] = ..., stage: _Optional[str] = ..., revision: _Optional[str] = ..., boot_id: _Optional[str] = ..., replica: _Optional[str] = ..., max_in_flight: _Optional[int] = ..., inputs: _Optional[_Iterable[_Union[EdgeContract, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[EdgeContract, _Mapping]]] = ..., connectors: _Optional[_Iterable[str]] = ..., state: _Optional[_Union[WorkerState, str]] = ..., locality: _Optional[str] = ...) -> None: ...

class EdgeContract(_message.Message):
    __slots__ = ("edge", "contract_hash")
    EDGE_FIELD_NUMBER: _ClassVar[int]
    CONTRACT_HASH_FIELD_NUMBER: _ClassVar[int]
    edge: str
    contract_hash: str
    def __init__(self, edge: _Optional[str] = ..., contract_hash: _Optional[str] = ...) -> None: ...

class AttachPipeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PipeOffer(_message.Message):
    __slots__ = ("port", "path", "token")
    PORT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    port: int
    path: str
    token: bytes
    def __init__(self, port: _Optional[int] = ..., path: _Optional[str] = ..., token: _Optional[bytes] = ...) -> None: ...

class FrontendBatch(_message.Message):
    __slots__ = ("frontend_id", "messages")
    FRONTEND_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    frontend_id: str
    messages: _containers.RepeatedCompositeFieldContainer[FrontendMessage]
    def __init__(self, frontend_id: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[FrontendMessage, _Mapping]]] = ...) -> None: ...

class FrontendMessage(_message.Message):
    __slots__ = ("request_id", "attempt", "start", "cancel", "discard", "taken", "part")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    DISCARD_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    attempt: int
    start: Start
    cancel: Cancel
    discard: Discard
    taken: Taken
    part: InputPart
    def __init__(self, request_id: _Optional[str] = ..., attempt: _Optional[int] = ..., start: _Optional[_Union[Start, _Mapping]] = ..., cancel: _Optional[_Union[Cancel, _Mapping]] = ..., discard: _Optional[_Union[Discard, _Mapping]] = ..., taken: _Optional[_Union[Taken, _Mapping]] = ..., part: _Optional[_Union[InputPart, _Mapping]] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ("remaining_ms", "inputs", "parameters", "outputs", "traceparent", "measured")
    REMAINING_MS_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    remaining_ms: int
    inputs: _containers.RepeatedCompositeFieldContainer[Input]
    parameters: bytes
    outputs: _containers.RepeatedScalarFieldContainer[str]
    traceparent: str
    measured: bool
    def __init__(self, remaining_ms: _Optional[int] = ..., inputs: _Optional[_Iterable[_Union[Input, _Mapping]]] = ..., parameters: _Optional[bytes] = ..., outputs: _Optional[_Iterable[str]] = ..., traceparent: _Optional[str] = ..., measured: _Optional[bool] = ...) -> None: ...

class InputPart(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class Input(_message.Message):
    __slots__ = ("edge", "inline", "handle")
    EDGE_FIELD_NUMBER: _ClassVar[int]
    INLINE_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    edge: str
    inline: bytes
    handle: Handle
    def __init__(self, edge: _Optional[str] = ..., inline: _Optional[bytes] = ..., handle: _Optional[_Union[Handle, _Mapping]] = ...) -> None: ...

class Cancel(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Discard(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Taken(_message.Message):
    __slots__ = ("parts",)
    PARTS_FIELD_NUMBER: _ClassVar[int]
    parts: int
    def __init__(self, parts: _Optional[int] = ...) -> None: ...

class WorkerBatch(_message.Message):
    __slots__ = ("messages", "load")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[WorkerMessage]
    load: Load
    def __init__(self, messages: _Optional[_Iterable[_Union[WorkerMessage, _Mapping]]] = ..., load: _Optional[_Union[Load, _Mapping]] = ...) -> None: ...

class WorkerMessage(_message.Message):
    __slots__ = ("request_id", "attempt", "accepted", "progress", "outputs", "finished", "failed")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    attempt: int
    accepted: bool
    progress: Progress
    outputs: _containers.RepeatedCompositeFieldContainer[Output]
    finished: Finished
    failed: Failed
    def __init__(self, request_id: _Optional[str] = ..., attempt: _Optional[int] = ..., accepted: _Optional[bool] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., outputs: _Optional[_Iterable[_Union[Output, _Mapping]]] = ..., finished: _Optional[_Union[Finished, _Mapping]] = ..., failed: _Optional[_Union[Failed, _Mapping]] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("step", "total")
    STEP_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    step: int
    total: int
    def __init__(self, step: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...

class Output(_message.Message):
    __slots__ = ("edge", "inline", "handle", "more")
    EDGE_FIELD_NUMBER: _ClassVar[int]
    INLINE_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    edge: str
    inline: bytes
    handle: Handle
    more: bool
    def __init__(self, edge: _Optional[str] = ..., inline: _Optional[bytes] = ..., handle: _Optional[_Union[Handle, _Mapping]] = ..., more: _Optional[bool] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ("usage", "measures")
    USAGE_FIELD_NUMBER: _ClassVar[int]
    MEASURES_FIELD_NUMBER: _ClassVar[int]
    usage: Usage
    measures: Measures
    def __init__(self, usage: _Optional[_Union[Usage, _Mapping]] = ..., measures: _Optional[_Union[Measures, _Mapping]] = ...) -> None: ...

class Measures(_message.Message):
    __slots__ = ("took_us", "generation_us", "postprocess_us", "batch_id", "batch_size", "edges")
    TOOK_US_FIELD_NUMBER: _ClassVar[int]
    GENERATION_US_FIELD_NUMBER: _ClassVar[int]
    POSTPROCESS_US_FIELD_NUMBER: _ClassVar[int]
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    took_us: int
    generation_us: int
    postprocess_us: int
    batch_id: int
    batch_size: int
    edges: _containers.RepeatedCompositeFieldContainer[EdgeMeasures]
    def __init__(self, took_us: _Optional[int] = ..., generation_us: _Optional[int] = ..., postprocess_us: _Optional[int] = ..., batch_id: _Optional[int] = ..., batch_size: _Optional[int] = ..., edges: _Optional[_Iterable[_Union[EdgeMeasures, _Mapping]]] = ...) -> None: ...

class EdgeMeasures(_message.Message):
    __slots__ = ("edge", "size_bytes", "tx_us", "rx_decode_us", "chunks")
    EDGE_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TX_US_FIELD_NUMBER: _ClassVar[int]
    RX_DECODE_US_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    edge: str
    size_bytes: int
    tx_us: int
    rx_decode_us: int
    chunks: int
    def __init__(self, edge: _Optional[str] = ..., size_bytes: _Optional[int] = ..., tx_us: _Optional[int] = ..., rx_decode_us: _Optional[int] = ..., chunks: _Optional[int] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("input_tokens", "output_tokens", "steps", "compute_seconds")
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    input_tokens: int
    output_tokens: int
    steps: int
    compute_seconds: float
    def __init__(self, input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., steps: _Optional[int] = ..., compute_seconds: _Optional[float] = ...) -> None: ...

class Failed(_message.Message):
    __slots__ = ("code", "message", "retryable", "param")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    PARAM_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    retryable: bool
    param: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., retryable: _Optional[bool] = ..., param: _Optional[str] = ...) -> None: ...

class Load(_message.Message):
    __slots__ = ("running", "waiting", "draining", "asleep")
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    ASLEEP_FIELD_NUMBER: _ClassVar[int]
    running: int
    waiting: int
    draining: bool
    asleep: bool
    def __init__(self, running: _Optional[int] = ..., waiting: _Optional[int] = ..., draining: _Optional[bool] = ..., asleep: _Optional[bool] = ...) -> None: ...

class Handle(_message.Message):
    __slots__ = ("key", "edge", "request_id", "connector", "owner", "boot_id", "size_bytes", "remaining_ms", "kind", "locator", "owner_stage")
    KEY_FIELD_NUMBER: _ClassVar[int]
    EDGE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    REMAINING_MS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LOCATOR_FIELD_NUMBER: _ClassVar[int]
    OWNER_STAGE_FIELD_NUMBER: _ClassVar[int]
    key: str
    edge: str
    request_id: str
    connector: str
    owner: str
    boot_id: str
    size_bytes: int
    remaining_ms: int
    kind: HandleKind
    locator: bytes
    owner_stage: str
    def __init__(self, key: _Optional[str] = ..., edge: _Optional[str] = ..., request_id: _Optional[str] = ..., connector: _Optional[str] = ..., owner: _Optional[str] = ..., boot_id: _Optional[str] = ..., size_bytes: _Optional[int] = ..., remaining_ms: _Optional[int] = ..., kind: _Optional[_Union[HandleKind, str]] = ..., locator: _Optional[bytes] = ..., owner_stage: _Optional[str] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("handle", "from_chunk", "most_chunks")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    FROM_CHUNK_FIELD_NUMBER: _ClassVar[int]
    MOST_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    handle: Handle
    from_chunk: int
    most_chunks: int
    def __init__(self, handle: _Optional[_Union[Handle, _Mapping]] = ..., from_chunk: _Optional[int] = ..., most_chunks: _Optional[int] = ...) -> None: ...

class PayloadSlice(_message.Message):
    __slots__ = ("data", "end_of_chunk", "end_of_stream", "chunks")
    DATA_FIELD_NUMBER: _ClassVar[int]
    END_OF_CHUNK_FIELD_NUMBER: _ClassVar[int]
    END_OF_STREAM_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    end_of_chunk: bool
    end_of_stream: bool
    chunks: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, data: _Optional[bytes] = ..., end_of_chunk: _Optional[bool] = ..., end_of_stream: _Optional[bool] = ..., chunks: _Optional[_Iterable[bytes]] = ...) -> None: ...

class ReadBatch(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[ReadMessage]
    def __init__(self, messages: _Optional[_Iterable[_Union[ReadMessage, _Mapping]]] = ...) -> None: ...

class ReadMessage(_message.Message):
    __slots__ = ("number", "begin", "taken", "leave")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    number: int
    begin: Handle
    taken: int
    leave: Leave
    def __init__(self, number: _Optional[int] = ..., begin: _Optional[_Union[Handle, _Mapping]] = ..., taken: _Optional[int] = ..., leave: _Optional[_Union[Leave, _Mapping]] = ...) -> None: ...

class Leave(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ChunkBatch(_message.Message):
    __slots__ = ("parts",)
    PARTS_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[StreamPart]
    def __init__(self, parts: _Optional[_Iterable[_Union[StreamPart, _Mapping]]] = ...) -> None: ...

class StreamPart(_message.Message):
    __slots__ = ("number", "chunks", "piece", "is_last_piece", "is_end", "gone")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    PIECE_FIELD_NUMBER: _ClassVar[int]
    IS_LAST_PIECE_FIELD_NUMBER: _ClassVar[int]
    IS_END_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    number: int
    chunks: _containers.RepeatedScalarFieldContainer[bytes]
    piece: bytes
    is_last_piece: bool
    is_end: bool
    gone: str
    def __init__(self, number: _Optional[int] = ..., chunks: _Optional[_Iterable[bytes]] = ..., piece: _Optional[bytes] = ..., is_last_piece: _Optional[bool] = ..., is_end: _Optional[bool] = ..., gone: _Optional[str] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("handles",)
    HANDLES_FIELD_NUMBER: _ClassVar[int]
    handles: _containers.RepeatedCompositeFieldContainer[Handle]
    def __init__(self, handles: _Optional[_Iterable[_Union[Handle, _Mapping]]] = ...) -> None: ...

class ReleaseReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ("timeout_ms",)
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    timeout_ms: int
    def __init__(self, timeout_ms: _Optional[int] = ...) -> None: ...

class DrainReply(_message.Message):
    __slots__ = ("left_running",)
    LEFT_RUNNING_FIELD_NUMBER: _ClassVar[int]
    left_running: int
    def __init__(self, left_running: _Optional[int] = ...) -> None: ...

class StatsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WorkerStats(_message.Message):
    __slots__ = ("running", "waiting", "payloads", "payload_bytes", "requests_total", "cancelled_total", "failed_total", "state", "sleep_level", "is_profiling")
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    FAILED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SLEEP_LEVEL_FIELD_NUMBER: _ClassVar[int]
    IS_PROFILING_FIELD_NUMBER: _ClassVar[int]
    running: int
    waiting: int
    payloads: int
    payload_bytes: int
    requests_total: int
    cancelled_total: int
    failed_total: int
    state: WorkerState
    sleep_level: int
    is_profiling: bool
    def __init__(self, running: _Optional[int] = ..., waiting: _Optional[int] = ..., payloads: _Optional[int] = ..., payload_bytes: _Optional[int] = ..., requests_total: _Optional[int] = ..., cancelled_total: _Optional[int] = ..., failed_total: _Optional[int] = ..., state: _Optional[_Union[WorkerState, str]] = ..., sleep_level: _Optional[int] = ..., is_profiling: _Optional[bool] = ...) -> None: ...

class SleepRequest(_message.Message):
    __slots__ = ("level", "timeout_ms")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    level: int
    timeout_ms: int
    def __init__(self, level: _Optional[int] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class SleepReply(_message.Message):
    __slots__ = ("freed_bytes",)
    FREED_BYTES_FIELD_NUMBER: _ClassVar[int]
    freed_bytes: int
    def __init__(self, freed_bytes: _Optional[int] = ...) -> None: ...

class WakeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WakeReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StartProfileRequest(_message.Message):
    __slots__ = ("max_steps",)
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    max_steps: int
    def __init__(self, max_steps: _Optional[int] = ...) -> None: ...

class StartProfileReply(_message.Message):
    __slots__ = ("trace",)
    TRACE_FIELD_NUMBER: _ClassVar[int]
    trace: str
    def __init__(self, trace: _Optional[str] = ...) -> None: ...

class StopProfileRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StopProfileReply(_message.Message):
    __slots__ = ("trace", "steps")
    TRACE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    trace: str
    steps: int
    def __init__(self, trace: _Optional[str] = ..., steps: _Optional[int] = ...) -> None: ...

class ResetCacheRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResetCacheReply(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: int
    def __init__(self, entries: _Optional[int] = ...) -> None: ...
