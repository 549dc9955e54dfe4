"""Builds the messages that a worker sends over Attach."""

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_pb2 import (
    Accepted,
    Failed,
    Finished,
    Handle,
    Output,
    Progress,
    Usage,
    WorkerMessage,
)
from omni_runtime.engines.protocol import StageProgress, StageUsage

MESSAGE_CHARACTERS = 2_000
"""An error's text is cut here: some libraries put whole tensors into theirs."""


def accepted(request_id: str, attempt: int) -> WorkerMessage:
    return WorkerMessage(request_id=request_id, attempt=attempt, accepted=Accepted())


def progress(request_id: str, attempt: int, event: StageProgress) -> WorkerMessage:
    return WorkerMessage(request_id=request_id, attempt=attempt, progress=Progress(step=event.step, total=event.total))


def output(request_id: str, attempt: int, handle: Handle) -> WorkerMessage:
    """An inline payload goes as such; for any other the handle goes."""
    if handle.connector == "inline":
        return WorkerMessage(
            request_id=request_id, attempt=attempt, output=Output(edge=handle.edge, inline=handle.locator)
        )
    return WorkerMessage(request_id=request_id, attempt=attempt, output=Output(edge=handle.edge, handle=handle))


def finished(request_id: str, attempt: int, usage: StageUsage) -> WorkerMessage:
    wire = Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        steps=usage.steps,
        compute_seconds=usage.compute_seconds,
    )
    return WorkerMessage(request_id=request_id, attempt=attempt, finished=Finished(usage=wire))


def failed(request_id: str, attempt: int, error: OmniError) -> WorkerMessage:
    wire = Failed(
        code=error.code,
        message=error.message[:MESSAGE_CHARACTERS],
        retryable=error.is_retryable,
        param=error.param or "",
    )
    return WorkerMessage(request_id=request_id, attempt=attempt, failed=wire)


def cancelled() -> OmniError:
    return OmniError(ErrorCode.CANCELLED, "the request was cancelled")
