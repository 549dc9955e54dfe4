"""Fills in the messages that a worker sends over the pipe."""

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_pb2 import Finished, WorkerMessage
from omni_runtime.engines.protocol import StageProgress, StageUsage
from omni_runtime.worker.transfers import Made

MESSAGE_CHARACTERS = 2_000
"""An error's text is cut here: some libraries put whole tensors into theirs."""


def progress(message: WorkerMessage, event: StageProgress) -> None:
    message.progress.step = event.step
    message.progress.total = event.total


def output(message: WorkerMessage, edge: str, made: Made, more: bool) -> None:
    if isinstance(made, bytes):
        message.outputs.add(edge=edge, inline=made, more=more)
    else:
        message.outputs.add(edge=edge, handle=made, more=more)


def finished(message: Finished, usage: StageUsage) -> None:
    wire = message.usage
    wire.input_tokens = usage.input_tokens
    wire.output_tokens = usage.output_tokens
    wire.steps = usage.steps
    wire.compute_seconds = usage.compute_seconds


def failed(message: WorkerMessage, error: OmniError) -> None:
    wire = message.failed
    wire.code = error.code
    wire.message = error.message[:MESSAGE_CHARACTERS]
    wire.retryable = error.is_retryable
    wire.param = error.param or ""


def cancelled() -> OmniError:
    return OmniError(ErrorCode.CANCELLED, "the request was cancelled")
