"""One control call to one worker, and what its refusal means."""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import grpc
from google.protobuf.message import Message

from omni_contract.wire.names import REFUSAL_KEY
from omni_contract.wire.stage_pb2_grpc import ControlStub
from omni_runtime.administration.calls import Call
from omni_runtime.connectors.channels import CHANNEL_OPTIONS
from omni_runtime.transport.protocol import Transport

STATUS: Mapping[grpc.StatusCode, tuple[HTTPStatus, str]] = {
    grpc.StatusCode.INVALID_ARGUMENT: (HTTPStatus.BAD_REQUEST, "invalid_request"),
    grpc.StatusCode.FAILED_PRECONDITION: (HTTPStatus.CONFLICT, "wrong_state"),
    grpc.StatusCode.UNIMPLEMENTED: (HTTPStatus.NOT_IMPLEMENTED, "not_supported"),
    grpc.StatusCode.UNAVAILABLE: (HTTPStatus.SERVICE_UNAVAILABLE, "stage_unavailable"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (HTTPStatus.GATEWAY_TIMEOUT, "deadline_exceeded"),
}
FAILED = (HTTPStatus.INTERNAL_SERVER_ERROR, "failed")


@dataclass(frozen=True)
class Worker:
    """`stage` is whose certificate it must show, where there is TLS."""

    address: str
    stage: str = ""


class RefusedError(Exception):
    """The worker refused, failed or cannot be reached; `code` is the stable one of the admin ports."""

    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


async def ask(call: Call, worker: Worker, options: Namespace, transport: Transport) -> Message:
    """The worker's answer; raises RefusedError."""
    async with transport.channel(worker.address, worker.stage, CHANNEL_OPTIONS) as channel:
        try:
            return await call.ask(ControlStub(channel), options)
        except grpc.aio.AioRpcError as error:
            raise _refusal(error, transport.explain(error, worker.stage)) from error


def _refusal(error: grpc.aio.AioRpcError, explained: str | None) -> RefusedError:
    status, code = STATUS.get(error.code(), FAILED)
    told = dict(error.trailing_metadata() or ())
    message = explained or error.details() or error.code().name
    return RefusedError(status, str(told.get(REFUSAL_KEY, code)), message)
