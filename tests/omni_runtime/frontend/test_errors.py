"""The one envelope."""

import json

import pytest

from omni_contract.wire.errors import HTTP_STATUS, ErrorCode, OmniError
from omni_runtime.frontend.errors import envelope, error_event, error_response
from omni_runtime.orchestrator import OverloadedError


@pytest.mark.case("runtime:K13")
@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_has_its_status_and_the_same_four_keys(code: ErrorCode) -> None:
    answer = error_response(OmniError(code, "words", "field"))
    assert answer.status_code == HTTP_STATUS[code] != 422
    error = json.loads(bytes(answer.body))["error"]
    assert {**error, "type": ""} == {"message": "words", "param": "field", "code": code.value, "type": ""}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.INVALID_REQUEST, "invalid_request_error"),
        (ErrorCode.UNAUTHENTICATED, "authentication_error"),
        (ErrorCode.MODEL_NOT_FOUND, "not_found_error"),
        (ErrorCode.OVERLOADED, "rate_limit_error"),
        (ErrorCode.STAGE_UNAVAILABLE, "server_error"),
    ],
)
def test_the_type_follows_the_status(code: ErrorCode, kind: str) -> None:
    assert envelope(HTTP_STATUS[code], code, "words").error.type == kind


@pytest.mark.parametrize("character", ["x", "\x00", "狐", "🦊", '"'])
def test_no_message_makes_the_body_longer_than_4_kib(character: str) -> None:
    answer = error_response(OmniError(ErrorCode.INTERNAL, character * 100_000, character * 100_000))
    assert len(bytes(answer.body)) <= 4096


def test_a_client_is_told_when_to_come_back() -> None:
    assert error_response(OverloadedError(9, 8, 17)).headers["retry-after"] == "17"
    assert int(error_response(OmniError(ErrorCode.STAGE_UNAVAILABLE, "gone")).headers["retry-after"]) >= 1
    assert "retry-after" not in error_response(OmniError(ErrorCode.INTERNAL, "oh")).headers


def test_a_stream_ends_with_an_event_that_the_sdk_reads_as_an_error() -> None:
    event, data = error_event(OmniError(ErrorCode.STAGE_FAILED, "oh")).strip().split("\n")
    assert event == "event: error"
    assert json.loads(data.removeprefix("data: "))["error"]["code"] == "stage_failed"
