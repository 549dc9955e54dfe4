"""Files of statistics: bounded, whole lines, and never in a request's way."""

import json
import logging
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from omni_runtime.statistics.files import KINDS, StatsFiles, StatsFilesError
from omni_runtime.statistics.line_file import LineFile
from omni_runtime.statistics.request import TransferEdgeStats
from tests.omni_runtime.statistics.examples import request, stage

AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)
FULL = Path("/dev/full")
TOO_LARGE = """
import resource, signal, sys
from pathlib import Path
from omni_runtime.statistics.line_file import LineFile
file = LineFile(Path(sys.argv[1]), 10**9)
file.append(b"first\\n")
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 60))
try:
    file.append(b"x" * 30 + b"\\n")
except OSError as error:
    print(error.strerror)
resource.setrlimit(resource.RLIMIT_FSIZE, (60, 60))
file.append(b"third\\n")
"""


def lines(directory: Path, kind: str) -> list[dict[str, Any]]:
    [path] = directory.glob(f"*.{kind}.stats.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_request_is_a_line_and_so_is_each_of_its_stages_and_edges(tmp_path: Path) -> None:
    files = StatsFiles(tmp_path / "stats", "frontend/0")
    stages = (stage("a", 1.0, 1.5, num_tokens_in=3, stage_gen_time_ms=400.00049), stage("b", 1.6, 2.0, image_num=1))
    edges = (TransferEdgeStats("a->b", 1.5, 0.1, 0.2, 0.3),)
    files.add(request(stages, edges, retries=1), AT)
    files.close()
    name = {"time": "2026-01-02T03:04:05.678+00:00", "request_id": "r-1"}
    [overall] = lines(tmp_path / "stats", "overall")
    assert overall == name | {
        "outcome": "finished",
        "retries": 1,
        "e2e_total_ms": 1000.0,
        "e2e_total_tokens": 3,
        "transfers_total_time_ms": 0.6,
        "transfers_total_kbytes": 1.5,
    }
    [first, second] = lines(tmp_path / "stats", "stages")
    assert (first["stage"], first["wall_time_ms"], first["stage_gen_time_ms"]) == ("a", 500.0, 400.0)
    assert (second["replica"], second["image_num"], "began_s" in second) == ("b-0", 1, False)
    [edge] = lines(tmp_path / "stats", "edges")
    assert (edge["edge"], edge["size_kbytes"], edge["total_time_ms"]) == ("a->b", 1.5, 0.6)
    assert (files.written, files.lost) == (1, 0)


def test_a_full_disk_loses_lines_and_says_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for kind in KINDS:
        (tmp_path / f"f-{os.getpid()}.{kind}.stats.jsonl").symlink_to(FULL)
    files = StatsFiles(tmp_path, "f")
    for _ in range(3):
        files.add(request((stage(),)), AT)
    files.close()
    assert (files.written, files.lost) == (0, 3)
    [said] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "No space left on device" in said.getMessage() and str(tmp_path) in said.getMessage()


def test_it_goes_on_once_there_is_room_again(tmp_path: Path) -> None:
    file, path = LineFile(tmp_path / "a.jsonl", 1000), tmp_path / "a.jsonl"
    path.symlink_to(FULL)
    with pytest.raises(OSError, match="No space left"):
        file.append(b"lost\n")
    file.close()
    path.unlink()
    file.append(b"kept\n")
    assert path.read_text() == "kept\n"


def test_a_line_that_only_half_fits_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    done = subprocess.run([sys.executable, "-c", TOO_LARGE, path], capture_output=True, text=True, check=True)
    assert done.stdout == "File too large\n"
    assert path.read_text() == "first\nthird\n"


def test_a_full_file_is_kept_until_the_next_is_full(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "a.stats.jsonl", 8)
    for line in (b"one\n", b"two\n", b"three\n", b"four\n", b"five\n"):
        file.append(line)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a.stats.old.jsonl": "three\nfour\n",
        "a.stats.jsonl": "five\n",
    }


def test_a_folder_that_cannot_be_made_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StatsFilesError, match=r"no statistics can be written to .*file/stats: Not a directory"):
        StatsFiles(tmp_path / "file" / "stats", "f")


def test_a_disk_that_hangs_holds_up_nobody_and_memory_stays_bounded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A FIFO that nobody reads hangs as soon as it is opened."""
    os.mkfifo(tmp_path / f"f-{os.getpid()}.overall.stats.jsonl")
    files = StatsFiles(tmp_path, "f", queue_requests=2)
    added = 0
    while not files.lost:
        files.add(request(), AT)
        added += 1
    assert "longer to write" in caplog.text
    reader = os.open(tmp_path / f"f-{os.getpid()}.overall.stats.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    files.close()
    os.close(reader)
    assert files.written + files.lost == added
