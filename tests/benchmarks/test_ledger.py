from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.bounds import BOUNDS
from benchmarks.ledger import Entry, read_entries, write_entry
from benchmarks.report import report


def test_an_entry_holds_the_figure_its_peer_and_where_it_comes_from(tmp_path: Path):
    ledger = tmp_path / "results.json"
    write_entry("hop.median_ms.c1", 0.5, "ms", command="make bench", peer=("bare grpc", 2.0), path=ledger)
    [entry] = read_entries(ledger)
    assert (entry.value, entry.peer, entry.peer_value) == (0.5, "bare grpc", 2.0)
    assert entry.machine and entry.commit and entry.date and entry.command == "make bench"


def test_a_new_figure_replaces_the_older_one_of_its_id_only(tmp_path: Path):
    ledger = tmp_path / "results.json"
    write_entry("b", 1, "s", command="x", path=ledger)
    write_entry("a", 2, "s", command="x", path=ledger)
    write_entry("b", 3, "s", command="x", path=ledger)
    assert [(entry.id, entry.value) for entry in read_entries(ledger)] == [("a", 2), ("b", 3)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.json"]


@pytest.mark.case("runtime:X9")
def test_the_report_marks_a_figure_that_is_out_of_its_bound():
    assert "out of bound" in report([entry("hop.median_ms.c1", 3.5)])
    assert "out of bound" in report([entry("routing.p99_vs_random", 0.71)])
    assert "out of bound" in report([entry("replicas.efficiency_1to4", 0.94)])
    assert "out of bound" in report([entry("mooncake_te.ratio_vs_raw", 0.9)])
    assert "out of bound" in report([entry("shm.256MiB.ratio_vs_vllm_omni", 2.9)])
    assert "out of bound" not in report([entry("hop.median_ms.c1", 2.5), entry("hop.saturation_rps", 400)])


def test_every_figure_that_is_held_to_a_bound_was_measured():
    assert BOUNDS.keys() <= {entry.id for entry in read_entries()}


@pytest.mark.parametrize(
    ("ids", "peer", "module"),
    [
        ([f"omni.e2e_ratio_vs_transformers.c{clients}" for clients in (1, 4, 16)], "transformers", "omni"),
        (["ar.tok_s_ratio_vs_vllm.cpu", "ar.tok_s_ratio_vs_vllm.h200"], "vLLM", "ar"),
        (["omni.first_audio_ratio_vs_vllm_omni.h200.c1"], "vllm-omni", "gpu_omni"),
        (["omni.audio_s_per_s_ratio_vs_vllm_omni.h200.c16"], "vllm-omni", "gpu_omni"),
    ],
)
def test_figures_beside_others_name_them_with_theirs_and_how_to_measure_again(ids: list[str], peer: str, module: str):
    measured = {entry.id: entry for entry in read_entries()}
    for entry in (measured[entry_id] for entry_id in ids):
        assert entry.peer is not None and peer in entry.peer and entry.peer_value
        assert f"benchmarks.{module}" in entry.command and find_spec(f"benchmarks.{module}")


def entry(entry_id: str, value: float) -> Entry:
    return Entry(entry_id, value, "ms", None, None, "make bench", "a machine", "abc", "2026-11-30T00:00:00+00:00")
