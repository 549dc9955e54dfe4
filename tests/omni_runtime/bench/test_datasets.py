import base64
import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest

from omni_runtime.bench.bodies import body_of
from omni_runtime.bench.datasets import requests_of
from omni_runtime.bench.run import due_times
from omni_runtime.bench.settings import BenchError, BenchSettings, add_arguments, settings_from
from omni_runtime.media.decode_image import decode_image
from omni_runtime.media.decode_sound import decode_sound
from omni_runtime.media.decode_video import decode_video
from omni_runtime.media.values import VideoLimits


def asked_for(*arguments: Any) -> BenchSettings:
    parser = ArgumentParser()
    add_arguments(parser)
    return settings_from(parser.parse_args([str(argument) for argument in ("--num-prompts", 4, *arguments)]))


def bodies(settings: BenchSettings) -> list[dict[str, Any]]:
    return [body_of(asked, number, "fox", settings) for number, asked in enumerate(requests_of(settings))]


SHORT = ("--random-input-len", 5, "--random-output-len", 3)


def test_random_text_has_its_lengths_and_a_common_prefix() -> None:
    requests = requests_of(asked_for(*SHORT, "--random-prefix-len", 2, "--random-range-ratio", 0.4))
    assert {tuple(one.prompt.split()[:2]) for one in requests} == {tuple(requests[0].prompt.split()[:2])}
    assert all(len(one.prompt.split()) == one.input_length for one in requests)
    assert all(5 <= one.input_length <= 9 and one.output_length in (1, 2, 3, 4, 5) for one in requests)


def test_a_seed_makes_the_same_requests_and_another_seed_others() -> None:
    assert bodies(asked_for(*SHORT)) == bodies(asked_for(*SHORT))
    assert bodies(asked_for(*SHORT)) != bodies(asked_for(*SHORT, "--seed", 1))
    assert [one["seed"] for one in bodies(asked_for(*SHORT, "--seed", 10))] == [10, 11, 12, 13]


def test_random_media_are_files_of_the_shape_of_their_bucket() -> None:
    shapes = "{(30, 40, 1): 1, (32, 48, 3): 1, (0, 1, 2): 1}"
    settings = asked_for(
        *SHORT,
        *("--dataset-name", "random-mm", "--random-mm-base-items-per-request", 3),
        *("--random-mm-limit-mm-per-prompt", '{"image": 1, "video": 1, "audio": 1}'),
        *("--random-mm-bucket-config", shapes),
    )
    content = bodies(settings)[0]["messages"][0]["content"]
    assert content[-1]["type"] == "text"
    files = {one["type"]: base64.b64decode(one[one["type"]]["url"].partition(",")[2]) for one in content[:-1]}
    assert decode_image(files["image_url"], 10_000).shape == (30, 40, 3)
    assert decode_sound(files["audio_url"], 5, 5).seconds == 1.0
    limits = VideoLimits(frames=32, frame_pixels=10_000, seconds=10, timeout_s=5)
    assert decode_video(files["video_url"], limits).frames.shape[1:] == (32, 48, 3)


def conversation(*turns: str) -> dict[str, Any]:
    return {"conversations": [{"from": "human", "value": turn} for turn in turns]}


def test_conversations_become_their_first_turn_with_the_length_of_the_answer(tmp_path: Path) -> None:
    file = tmp_path / "sharegpt.json"
    file.write_text(json.dumps([conversation("a b c d e", "1 2 3 4"), conversation("too", "short"), conversation("x")]))
    requests = requests_of(asked_for("--dataset-name", "sharegpt", "--dataset-path", file))
    assert [(one.prompt, one.output_length) for one in requests] == [("a b c d e", 4)] * 4
    longer = asked_for("--dataset-name", "sharegpt", "--dataset-path", file, "--sharegpt-output-len", 9)
    assert requests_of(longer)[0].output_length == 9


def test_a_trace_says_when_what_comes_and_how_soon_it_must_be_there(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    lines = [
        {"timestamp": 0, "input_length": 6, "output_length": 2},
        {"timestamp": 1500, "prompt": "a red fox", "width": 64, "height": 32, "seed": 5, "slo_ms": 250},
    ]
    file.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    settings = asked_for("--dataset-name", "trace", "--dataset-path", file, "--backend", "openai-images")
    requests = requests_of(settings)
    assert due_times(requests, settings.load) == [0.0, 1.5]
    assert [len(one.prompt.split()) for one in requests] == [6, 3] and requests[1].slo_s == 0.25
    painted = bodies(settings)[1]
    assert (painted["prompt"], painted["size"], painted["seed"]) == ("a red fox", "64x32", 5)


@pytest.mark.parametrize(
    ("content", "dataset"), [("no json", "sharegpt"), ("[]", "sharegpt"), ('[{"a": 1}]', "sharegpt"), ("7", "trace")]
)
def test_a_file_of_another_form_is_refused_by_its_name(content: str, dataset: str, tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text(content)
    with pytest.raises(BenchError, match="data"):
        requests_of(asked_for("--dataset-name", dataset, "--dataset-path", file))


def test_fields_of_the_command_line_lie_over_the_rest() -> None:
    body = bodies(asked_for(*SHORT, "--ignore-eos", "--extra_body", '{"modalities": ["text"], "max_tokens": 9}'))[0]
    assert (body["ignore_eos"], body["modalities"], body["max_tokens"]) == (True, ["text"], 9)


def test_speech_is_asked_for_as_a_file_whose_length_can_be_told() -> None:
    assert bodies(asked_for(*SHORT, "--backend", "openai-speech"))[0]["response_format"] == "wav"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--dataset-name", "trace"), "needs its file"),
        (("--dataset-path", "x"), "takes no file"),
        (("--num-prompts", 0), "at least 1"),
        (("--max-concurrency", -1), "at least 1"),
        (("--request-rate", 0), "above 0"),
        (("--random-range-ratio", 1), "below 1"),
        (("--percentile-metrics", "ttft,speed"), 'no "speed"; use ttft'),
        (("--metric-percentiles", "high"), "numbers from 0 to 100"),
        (("--metric-percentiles", "101"), "numbers from 0 to 100"),
        (("--extra-body", "[]"), "send a JSON object"),
        (("--extra-body", '{"response_format": "mp3"}'), "can be told of wav"),
        (("--dataset-name", "random-mm", "--backend", "openai-speech"), "only chats take media"),
        (("--dataset-name", "random-mm", "--random-mm-bucket-config", "{(1,): 1}"), "--random-mm-bucket-config: send"),
        (("--dataset-name", "random-mm", "--random-mm-bucket-config", "{(1, 1, 1): 0}"), "not all of them 0"),
        (("--dataset-name", "random-mm", "--random-mm-limit-mm-per-prompt", '{"smell": 1}'), "smell"),
        (("--dataset-name", "random-mm", "--random-mm-base-items-per-request", 999), "more than the 255"),
        (("--dataset-name", "random-mm", "--random-mm-num-mm-items-range-ratio", 2), "from 0 to 1"),
    ],
)
def test_what_does_not_go_together_is_refused_by_its_flag(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(BenchError, match=words):
        asked_for(*arguments)
