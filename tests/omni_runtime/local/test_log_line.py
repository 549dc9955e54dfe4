import json

import pytest

from omni_runtime.local.log_line import read_log_line

LINE = {"time": "2026-11-30T14:03:57.858Z", "level": "INFO", "logger": "x.y", "message": "loading", "stage": "denoiser"}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "14:03:57 loading"),
        ({"level": "WARNING"}, "14:03:57 WARNING: loading"),
        ({"request_id": "req-1"}, "14:03:57 loading (req-1)"),
        ({"error": "Traceback: x"}, "14:03:57 loading\nTraceback: x"),
    ],
)
def test_a_line_keeps_time_warning_message_request_and_error(changes: dict[str, str], text: str) -> None:
    read = read_log_line(json.dumps({**LINE, **changes}))
    assert (read.message, read.text) == ("loading", text)


@pytest.mark.parametrize("line", ["", "Killed", "[1, 2]", '{"no": "message"}', "3"])
def test_what_is_no_log_record_stays_as_it_is(line: str) -> None:
    assert read_log_line(line).text == line
