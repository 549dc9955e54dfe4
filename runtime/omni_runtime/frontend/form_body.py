"""Multipart forms, as the SDK sends files: read in memory, since the body's limit has held already."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from omni_contract.wire.errors import ErrorCode, OmniError

MEDIA_TYPE = "multipart/form-data"
MOST_FIELDS = 64

Fields: TypeAlias = Mapping[str, Any]
"""A text, the bytes of a file, or a list of them, by the field's name."""
Body = TypeVar("Body", bound=BaseModel)


class InMemoryParser(MultiPartParser):
    """A container may have no disk to spill to; 0 says never."""

    spool_max_size = 0


async def form_of(request: Request, model: type[Body]) -> Body:
    """The form as its model says. Raises OmniError for what is no form, RequestValidationError for a wrong field."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != MEDIA_TYPE:
        got = f'"{content_type[:60]}"' if content_type else "none"
        text = f"the body must be a form with a file: send content-type {MEDIA_TYPE}, got {got}"
        raise OmniError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, text)
    try:
        return model.model_validate(await _fields(request))
    except ValidationError as exc:
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in exc.errors()]) from exc


def form_body(model: type[BaseModel]) -> dict[str, Any]:
    """What the documentation of a route says that takes such a form."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {MEDIA_TYPE: {"schema": schema}}}}


async def _fields(request: Request) -> Fields:
    parser = InMemoryParser(request.headers, request.stream(), max_files=MOST_FIELDS, max_fields=MOST_FIELDS)
    try:
        form = await parser.parse()
        return gathered([(name, await _value(value)) for name, value in form.multi_items()])
    except (MultiPartException, KeyError, UnicodeError) as exc:
        said = getattr(exc, "message", "it cannot be read")
        raise OmniError(ErrorCode.INVALID_REQUEST, f"the body is no valid form: {said}") from exc


def gathered(items: Iterable[tuple[str, Any]]) -> Fields:
    """Values by their field's name. Lists are sent as `include[]`, `image[0]`, or by repeating a name."""
    fields: dict[str, Any] = {}
    for full_name, value in items:
        name, bracket, _ = full_name.partition("[")
        if name not in fields:
            fields[name] = [value] if bracket else value
        else:
            before = fields[name]
            fields[name] = [*(before if isinstance(before, list) else [before]), value]
    return fields


async def _value(value: str | UploadFile) -> str | bytes:
    return await value.read() if isinstance(value, UploadFile) else value
