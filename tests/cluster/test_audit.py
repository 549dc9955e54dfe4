from __future__ import annotations

import json
from pathlib import Path

from tests.cluster.audit import Request, requests

EVENT = {
    "stage": "ResponseComplete",
    "verb": "update",
    "user": {"username": "system:serviceaccount:omni:operator"},
    "userAgent": "omni-operator",
    "objectRef": {
        "apiGroup": "serving.omnimodel.dev",
        "resource": "omnimodels",
        "subresource": "status",
        "namespace": "omni",
        "name": "image",
    },
    "responseStatus": {"code": 200},
    "requestReceivedTimestamp": "2026-11-30T12:00:00.000000Z",
}


def test_a_request_says_who_did_what_to_which_resource(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(json.dumps(EVENT) + "\n")

    assert list(requests(log)) == [
        Request(
            user="system:serviceaccount:omni:operator",
            verb="update",
            group="serving.omnimodel.dev",
            resource="omnimodels/status",
            namespace="omni",
            name="image",
            status=200,
            stage="ResponseComplete",
            user_agent="omni-operator",
            received_at="2026-11-30T12:00:00.000000Z",
        )
    ]


def test_a_request_without_an_object_has_no_resource(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(json.dumps({key: value for key, value in EVENT.items() if key != "objectRef"}) + "\n")

    assert [request.resource for request in requests(log)] == [""]


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(json.dumps(EVENT) + "\n" + json.dumps(EVENT)[:40])

    assert len(list(requests(log))) == 1
