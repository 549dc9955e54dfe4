"""`omni bench serve` as a user runs it, against models of fake stages whose times and tokens are known."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omni_runtime.engines.fake_answers import SAMPLES_PER_ITEM
from tests.layout.source import CHECKOUT
from tests.local.conftest import fake_model_file
from tests.support.fake_omni import SPEECH_STEPS, STEPS
from tests.support.serve_process import OMNI, Serve, serving

STEP_S = 0.01


def fake_example(name: str, folder: Path) -> tuple[str, ...]:
    return str(CHECKOUT / "examples" / f"{name}.yaml"), "--volume", f"models={folder}", "--allow-fake-engine"


@pytest.fixture(scope="module")
def chatting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    folder = tmp_path_factory.mktemp("chatting")
    with serving(*fake_example("fake-omni", folder), "--port", "0", folder=folder) as serve:
        yield serve


def bench(serve: Serve, *arguments: str, folder: Path, status: int = 0) -> tuple[dict[str, Any], str]:
    """The saved results, and what was printed."""
    file = folder / "result.json"
    where = ("--base-url", serve.url(), "--result-dir", str(folder), "--result-filename", file.name, "--save-detailed")
    done = subprocess.run([OMNI, "bench", "serve", *where, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(file.read_text()), done.stdout + done.stderr


def test_chats_in_text_and_sound_are_measured_and_come_again_with_their_seed(chatting: Serve, tmp_path: Path) -> None:
    load = ("--num-prompts", "8", "--max-concurrency", "4", "--random-input-len", "6", "--random-output-len", "12")
    found, printed = bench(chatting, *load, folder=tmp_path)
    assert (found["completed"], found["failed"], found["max_concurrent_requests"]) == (8, 0, 4)
    assert (found["total_input_tokens"], found["total_output_tokens"]) == (8 * 6, 8 * STEPS)
    assert found["total_audio_frames"] == 8 * STEPS * SAMPLES_PER_ITEM
    assert found["mean_ttft_ms"] >= STEP_S * 1000
    assert 0 < found["mean_tpot_ms"] <= found["mean_e2el_ms"] / (STEPS - 1)
    assert found["mean_e2el_ms"] >= STEPS * STEP_S * 1000
    assert found["mean_audio_rtf"] == pytest.approx(found["mean_e2el_ms"] / 1000 / (STEPS * 0.02), rel=0.01)
    assert "prompts 8/8" in printed and "Mean TTFT (ms)" in printed
    again, _ = bench(chatting, *load, folder=tmp_path)
    assert again["generated_texts"] == found["generated_texts"]


@pytest.mark.parametrize("backend", ["openai-chat-omni", "openai-completions"])
def test_text_alone_is_measured_at_its_rate(chatting: Serve, backend: str, tmp_path: Path) -> None:
    text_only = ("--extra-body", '{"modalities": ["text"]}') if backend == "openai-chat-omni" else ()
    load = ("--num-prompts", "6", "--request-rate", "20", "--random-input-len", "4", "--random-output-len", "5")
    found, _ = bench(chatting, "--backend", backend, *text_only, *load, folder=tmp_path)
    assert (found["total_output_tokens"], found["total_audio_frames"]) == (6 * 5, 0)
    assert "mean_audio_rtf" not in found
    assert found["start_times"] == sorted(found["start_times"]) and found["start_times"][-1] > 0.05


def test_media_of_every_kind_reach_the_model(chatting: Serve, tmp_path: Path) -> None:
    kinds = "{(32, 32, 1): 1, (32, 32, 4): 1, (0, 1, 1): 1}"
    mix = ("--dataset-name", "random-mm", "--random-mm-base-items-per-request", "3", "--random-mm-bucket-config", kinds)
    limits = ("--random-mm-limit-mm-per-prompt", '{"image": 1, "video": 1, "audio": 1}')
    found, _ = bench(chatting, *mix, *limits, "--num-prompts", "2", "--random-input-len", "3", folder=tmp_path)
    assert found["completed"] == 2
    heard = " ".join(found["generated_texts"])
    assert "image:32x32x3" in heard and "audio:16000" in heard and "frames:" in heard


def test_requests_that_are_refused_are_counted_and_told(chatting: Serve, tmp_path: Path) -> None:
    wrong = ("--num-prompts", "3", "--extra-body", '{"temperature": 9}', "--random-input-len", "3")
    found, printed = bench(chatting, *wrong, folder=tmp_path, status=1)
    assert (found["completed"], found["failed"]) == (0, 3)
    assert "3 failed: 400: temperature: input should be less than or equal to 2" in printed


def test_cases_of_a_file_are_held_to_their_baselines(chatting: Serve, tmp_path: Path) -> None:
    load = {"num_prompts": [2, 3], "random_input_len": 4, "random_output_len": 5}
    good, bad = {"failed": 0, "completed": [2, 3], "mean_e2el_ms": 60_000}, {"mean_e2el_ms": 1}
    cases = [{"test_name": "fox", "benchmark_params": [load | {"baseline": good}]}]
    slow = {"test_name": "hare", "benchmark_params": [load | {"num_prompts": 1, "baseline": bad}]}

    def run(*entries: Any) -> "subprocess.CompletedProcess[str]":
        (tmp_path / "cases.json").write_text(json.dumps(entries))
        command = [OMNI, "bench", "cases", tmp_path / "cases.json", "--base-url", chatting.url()]
        return subprocess.run([*command, "--result-dir", tmp_path], capture_output=True, text=True, timeout=120)

    done = run(*cases)
    assert done.returncode == 0 and done.stdout.count("ok    mean_e2el_ms") == 2, done.stdout + done.stderr
    assert [json.loads((tmp_path / f"fox-{n}.json").read_text())["completed"] for n in range(2)] == [2, 3]
    done = run(slow, *cases)
    assert done.returncode == 1 and "WORSE mean_e2el_ms" in done.stdout and (tmp_path / "hare.json").is_file()


def test_speech_is_measured(tmp_path: Path) -> None:
    with serving(*fake_example("fake-speech", tmp_path), "--port", "0", folder=tmp_path) as serve:
        asked = ("--backend", "openai-speech", "--num-prompts", "2", "--random-input-len", "5")
        found, _ = bench(serve, *asked, folder=tmp_path)
    assert found["total_audio_frames"] == 2 * SPEECH_STEPS * SAMPLES_PER_ITEM
    assert 0 < found["mean_audio_ttfp_ms"] < found["mean_e2el_ms"]


def test_pictures_of_a_trace_are_measured_against_their_slo(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    lines = [{"timestamp": 100 * n, "prompt": "a fox", "width": 32, "height": 32, "slo_ms": 60_000} for n in range(3)]
    trace.write_text("\n".join(map(json.dumps, lines)))
    with serving(*fake_model_file(tmp_path), "--port", "0", folder=tmp_path) as serve:
        asked = ("--backend", "openai-images", "--dataset-name", "trace", "--dataset-path", str(trace))
        found, printed = bench(serve, *asked, "--num-warmups", "1", folder=tmp_path)
    assert (found["completed"], found["total_images"], found["slo_attainment"]) == (3, 3, 1.0)
    assert [round(at_s, 1) for at_s in found["start_times"]] == [0.0, 0.1, 0.2]
    assert "Total images" in printed


def test_an_endpoint_that_is_not_there_is_told_at_once() -> None:
    command = [OMNI, "bench", "serve", "--port", "1", "--num-prompts", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "tells no model" in done.stderr and "use --model" in done.stderr
