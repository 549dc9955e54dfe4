"""The error codes that pods, HTTP answers and status share, with the HTTP status and retry rule of each."""

from enum import StrEnum


class ErrorCode(StrEnum):
    """Why a request failed; the value is the stable `code` that users see."""

    INVALID_REQUEST = "invalid_request"
    UNAUTHENTICATED = "invalid_api_key"
    MODEL_NOT_FOUND = "model_not_found"
    NOT_FOUND = "not_found"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    OVERLOADED = "overloaded"
    CANCELLED = "cancelled"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    BODY_TIMEOUT = "body_timeout"
    STAGE_UNAVAILABLE = "stage_unavailable"
    STAGE_FAILED = "stage_failed"
    TRANSFER_FAILED = "transfer_failed"
    OUT_OF_MEMORY = "out_of_memory"
    INTERNAL = "internal"


HTTP_STATUS: dict[ErrorCode, int] = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.MODEL_NOT_FOUND: 404,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.PAYLOAD_TOO_LARGE: 413,
    ErrorCode.UNSUPPORTED_MEDIA_TYPE: 415,
    ErrorCode.OVERLOADED: 429,
    ErrorCode.CANCELLED: 499,
    ErrorCode.DEADLINE_EXCEEDED: 504,
    ErrorCode.BODY_TIMEOUT: 408,
    ErrorCode.STAGE_UNAVAILABLE: 503,
    ErrorCode.STAGE_FAILED: 500,
    ErrorCode.TRANSFER_FAILED: 500,
    ErrorCode.OUT_OF_MEMORY: 503,
    ErrorCode.INTERNAL: 500,
}

RETRYABLE = frozenset(
    {
        ErrorCode.OVERLOADED,
        ErrorCode.STAGE_UNAVAILABLE,
        ErrorCode.STAGE_FAILED,
        ErrorCode.TRANSFER_FAILED,
        ErrorCode.OUT_OF_MEMORY,
    }
)


class OmniError(Exception):
    """A request's failure, as it travels from the stage to the client.

    `param` names the request field at fault; `is_retryable` says that another replica may succeed.
    """

    def __init__(self, code: ErrorCode, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param

    @property
    def is_retryable(self) -> bool:
        return self.code in RETRYABLE


class TransferError(OmniError):
    """A payload could not be moved over an edge."""

    def __init__(self, edge: str, request_id: str, reason: str) -> None:
        super().__init__(ErrorCode.TRANSFER_FAILED, f'edge "{edge}": {reason} (request {request_id})')


class StreamDroppedError(TransferError):
    """Nobody reads the stream any more: its consumer has ended, or its time is up."""
