"""The endpoints that take JSON say so before they read it as something else."""

from fastapi import Request

from omni_contract.wire.errors import ErrorCode, OmniError


async def require_json(request: Request) -> None:
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        got = f'"{media_type[:60]}"' if media_type else "none"
        text = f"the body must be JSON: send content-type application/json, got {got}"
        raise OmniError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, text)
