"""Parts of a client's input that is too large for one message, until the start that they belong to."""

from collections.abc import Sequence

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.transport.pipe import LARGEST_INPUT_BYTES


class InputParts:
    """Of one pipe. They come right before their start, so there are those of one attempt at a time."""

    def __init__(self, largest_bytes: int = LARGEST_INPUT_BYTES) -> None:
        self._largest_bytes = largest_bytes
        self._attempt = ("", 0)
        self._parts: list[bytes] = []
        self._size_bytes = 0

    def add(self, request_id: str, attempt: int, data: bytes) -> None:
        """More than a worker takes is not kept."""
        if self._attempt != (request_id, attempt):
            self._begin(request_id, attempt)
        self._size_bytes += len(data)
        if self._size_bytes > self._largest_bytes:
            self._parts.clear()
        else:
            self._parts.append(data)

    def take(self, request_id: str, attempt: int) -> Sequence[bytes]:
        """Those of the attempt that starts now; raises OmniError if they were more than a worker takes."""
        if self._attempt != (request_id, attempt):
            return ()
        parts, size_bytes = self._parts, self._size_bytes
        self._begin("", 0)
        if size_bytes > self._largest_bytes:
            text = f"the request's input has more than {self._largest_bytes:,} bytes, which is the most a stage takes"
            raise OmniError(ErrorCode.PAYLOAD_TOO_LARGE, text)
        return parts

    def _begin(self, request_id: str, attempt: int) -> None:
        self._attempt, self._parts, self._size_bytes = (request_id, attempt), [], 0
