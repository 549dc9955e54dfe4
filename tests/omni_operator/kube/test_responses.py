"""What an answer of the API server means."""

import json
from typing import Any

import pytest

from omni_operator.errors import ApiError, Conflict, Expired, NamespaceEnding, NotFound, Refused, Unavailable
from omni_operator.kube.responses import object_of


def a_status(message: str, **fields: Any) -> bytes:
    return json.dumps({"kind": "Status", "message": message, **fields}).encode()


def test_a_success_gives_the_object() -> None:
    assert object_of(201, b'{"kind": "Service"}') == {"kind": "Service"}


@pytest.mark.case("operator:M14")
@pytest.mark.parametrize(
    ("status", "error"),
    [(400, Refused), (403, Refused), (404, NotFound), (409, Conflict), (410, Expired), (422, Refused)]
    + [(status, Unavailable) for status in (401, 408, 429, 500, 502, 503, 504)],
)
def test_a_failure_is_a_named_error_with_the_server_s_words(status: int, error: type[ApiError]) -> None:
    with pytest.raises(error, match="in its own words") as caught:
        object_of(status, a_status("in its own words"))
    assert type(caught.value) is error


def test_a_namespace_that_ends_is_told_from_missing_rights() -> None:
    details = {"causes": [{"reason": "NamespaceTerminating"}]}
    with pytest.raises(NamespaceEnding):
        object_of(403, a_status("namespace team is being terminated", details=details))


@pytest.mark.case("operator:M08")
def test_the_time_to_wait_is_kept() -> None:
    with pytest.raises(Unavailable) as caught:
        object_of(429, a_status("too many requests"), "7")
    assert caught.value.retry_after_s == 7


def test_an_answer_of_a_proxy_is_quoted() -> None:
    with pytest.raises(Unavailable, match="<html>bad gateway"):
        object_of(502, b"<html>bad gateway</html>")
