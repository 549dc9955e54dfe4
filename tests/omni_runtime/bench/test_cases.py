"""Cases of performance: each load of the file, its figures held to its baselines."""

import json
from pathlib import Path
from typing import Any

import pytest

from omni_runtime.bench.cases import Case, Held, held, read_cases
from omni_runtime.bench.settings import BenchError, BenchSettings, Target

AT = Target("http://there:1", model="fox", api_key="key")


def read(folder: Path, *entries: Any) -> list[Case]:
    file = folder / "cases.json"
    file.write_text(json.dumps(entries))
    return read_cases(file, AT)


def entry(**load: Any) -> dict[str, Any]:
    return {"test_name": "random", "benchmark_params": [load]}


def test_a_load_is_flags_with_underscores_and_goes_where_the_command_line_says(tmp_path: Path) -> None:
    load = {"dataset_name": "random", "random_input_len": 6, "ignore_eos": True, "save_detailed": False}
    [case] = read(tmp_path, entry(**load, num_prompts=3, extra_body={"modalities": ["text"]}, baseline={"failed": 0}))
    settings = case.settings
    assert (case.name, case.baseline) == ("random", {"failed": 0.0})
    assert (settings.target.url, settings.target.model, settings.target.api_key) == ("http://there:1", "fox", "key")
    assert (settings.load.requests, settings.lengths.input, settings.ignore_eos) == (3, 6, True)
    assert (settings.report.is_detailed, settings.extra_body) == (False, {"modalities": ["text"]})


def test_lists_are_loads_of_their_own_with_baselines_of_their_own(tmp_path: Path) -> None:
    baseline = {"mean_ttft_ms": [30, 60], "failed": 0}
    slow, fast = read(tmp_path, entry(num_prompts=[10, 20], request_rate=[0.5, 1], seed=7, baseline=baseline))
    assert (slow.name, fast.name) == ("random-0", "random-1")
    assert [(one.settings.load.requests, one.settings.load.rate, one.settings.load.seed) for one in (slow, fast)] == [
        (10, 0.5, 7),
        (20, 1.0, 7),
    ]
    assert [one.baseline for one in (slow, fast)] == [
        {"mean_ttft_ms": 30.0, "failed": 0.0},
        {"mean_ttft_ms": 60.0, "failed": 0.0},
    ]


def test_times_are_held_to_at_most_and_all_else_to_at_least() -> None:
    case = Case("c", BenchSettings(AT), {"p99_ttft_ms": 10, "mean_audio_rtf": 1, "request_throughput": 5, "failed": 0})
    good = {"p99_ttft_ms": 10, "mean_audio_rtf": 0.5, "request_throughput": 5, "failed": 0}
    assert all(one.holds for one in held(case, good))
    bad = {"p99_ttft_ms": 11, "mean_audio_rtf": 1.5, "request_throughput": 4, "failed": 1}
    assert not any(one.holds for one in held(case, bad))
    assert str(Held("p99_ttft_ms", 11.0, 10)) == "WORSE p99_ttft_ms: 11 (baseline ≤ 10)"


def test_a_figure_that_no_request_has_is_worse_than_any_baseline() -> None:
    [one] = held(Case("c", BenchSettings(AT), {"mean_ttft_ms": 10}), {"failed": 3})
    assert not one.holds
    assert str(one) == "WORSE mean_ttft_ms: no request has any (baseline ≤ 10)"


def test_keys_may_have_dashes_and_null_leaves_a_flag_out(tmp_path: Path) -> None:
    load = {"num-prompts": [1, 2], "max_concurrency": [None, 4], "percentile-metrics": "ttft"}
    alone, bounded = read(tmp_path, entry(**load, baseline={"p99_ttft_ms": [1, 2]}))
    assert [one.settings.load.max_concurrency for one in (alone, bounded)] == [None, 4]
    assert (bounded.settings.load.requests, bounded.settings.report.metrics) == (2, ("ttft",))


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "send a list of cases"),
        (["random"], "send a list of cases"),
        ([{"test_name": "a"}], "benchmark_params, a list of maps"),
        ([entry() | {"server_params": {}}], "server_params is not supported: .* start it with omni serve"),
        ([entry() | {"benchmark_parms": []}], 'did you mean "benchmark_params"'),
        ([entry(num_promts=3)], "random: unrecognized arguments: --num-promts"),
        ([entry(num_prompts=0)], "random: --num-prompts 0"),
        ([entry(base_url="http://x")], "base_url is for all cases"),
        ([entry(**{"result-dir": "x"})], "result_dir is for all cases"),
        ([entry(), entry()], "random: several cases have this name"),
        ([entry() | {"test_name": "../random"}], "is that of the file"),
        ([entry(num_prompts=[1, 2], request_rate=[1])], "lists of unlike lengths"),
        ([entry(num_prompts=[])], "or empty"),
        (
            [entry(num_prompts=[1, 2], baseline={"failed": [0]})],
            "baseline failed has 1 values, and the load is run 2 times",
        ),
        ([entry(num_prompts=[1, 2], baseline={"failed": [0, 0, 0]})], "baseline failed has 3 values"),
        ([entry(baseline={"mean_tfft_ms": 1})], r'there is no figure "mean_tfft_ms".*did you mean "mean_ttft_ms"'),
        ([entry(percentile_metrics="itl", baseline={"mean_ttft_ms": 1})], 'there is no figure "mean_ttft_ms"'),
        ([entry(baseline={"failed": "0"})], "baseline failed is a number"),
        ([entry(baseline=[])], "baseline is a map"),
    ],
)
def test_what_is_wrong_is_told_with_its_case_and_key(entries: list[Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=words):
        read(tmp_path, *entries)


def test_a_file_that_is_no_json_is_told(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text("[")
    with pytest.raises(BenchError, match="cannot be read as JSON"):
        read_cases(tmp_path / "cases.json", AT)
