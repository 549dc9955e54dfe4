"""`omni trace` from a folder of spans to a file."""

import json
from pathlib import Path

import pytest

from omni_contract.cli import main
from omni_runtime.tracing.settings import TracingSettings
from omni_runtime.tracing.start import start_tracing


@pytest.fixture
def spans(tmp_path: Path) -> Path:
    folder = tmp_path / "spans"
    tracing = start_tracing(TracingSettings(directory=folder), "frontend", "f")
    tracing.start("GET /", attributes={"omni.request_id": "req-1"}).end()
    tracing.close()
    return folder


def test_a_request_s_spans_become_a_file_for_perfetto(spans: Path, tmp_path: Path) -> None:
    out = tmp_path / "one.json"
    assert main(["trace", "req-1", "--from", str(spans), "--out", str(out)]) == 0
    assert [event["name"] for event in json.loads(out.read_text())["traceEvents"]] == ["process_name", "GET /"]


def test_an_unknown_request_says_where_it_was_looked_for(spans: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "req-2", "--from", str(spans)]) == 1
    assert f"no span of request req-2 in {spans}" in capsys.readouterr().err


def test_a_folder_that_is_none_says_which_one_is_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "req-1", "--from", str(tmp_path / "missing")]) == 2
    assert "name the one given by --trace-dir" in capsys.readouterr().err
