"""Prompts as people write them, and what the stages get of them."""

from pathlib import Path
from typing import Any

import numpy
import pytest
from PIL import Image

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload
from omni_contract.wire.stage_table import StageTable
from omni_runtime.offline.prompts import Prompt, Reading, keys_of, payload_of, reading_of
from tests.support.media_files import audio_file, image_file, tone, video_file
from tests.support.stage_tables import stage, table

THINKER = table([stage("thinker", "text"), stage("vocoder", "audio")])
SPEAKER = table(
    [
        stage("vocoder", "audio").model_copy(
            update={"output": stage("x", "audio").output.model_copy(update={"voices": ("Vivian", "Ryan")})}
        )
    ]  # type: ignore[union-attr]
)
PAINTER = table([stage("painter", "image")])
SAMPLES = numpy.linspace(-1, 1, 16_000, dtype=numpy.float32)


def payload(prompt: Prompt, reading: Reading = Reading.ANSWER, of: StageTable = THINKER) -> Payload:
    return payload_of(keys_of(prompt), reading, of)


def refused(prompt: Any, reading: Reading = Reading.ANSWER, of: StageTable = THINKER) -> OmniError:
    with pytest.raises(OmniError) as caught:
        payload(prompt, reading, of)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    return caught.value


@pytest.mark.parametrize(
    ("wanted", "offered", "reading"),
    [
        (("text",), ("text", "audio"), Reading.ANSWER),
        (("audio",), ("text", "audio"), Reading.ANSWER),
        (("audio",), ("audio",), Reading.SPEAK),
        (("image",), ("image",), Reading.PAINT),
        (("image",), ("text", "image"), Reading.PAINT),
    ],
)
def test_what_is_wanted_says_how_a_prompt_is_read(
    wanted: tuple[str, ...], offered: tuple[str, ...], reading: Reading
) -> None:
    assert reading_of(wanted, offered) is reading


def test_a_text_alone_is_a_prompt_for_each_kind_of_model() -> None:
    assert payload("a fox") == {"prompt": "a fox"}
    assert payload("a fox", Reading.SPEAK, SPEAKER) == {"input": "a fox", "voice": "Vivian"}
    assert payload("a fox", Reading.PAINT, PAINTER) == {"prompt": "a fox", "negative_prompt": None}


def test_tokens_and_processor_options_go_on_as_they_are() -> None:
    assert payload({"prompt_token_ids": [1, 2], "mm_processor_kwargs": {"fps": 1}}) == {
        "prompt_token_ids": [1, 2],
        "mm_processor_kwargs": {"fps": 1},
    }


def test_media_of_a_prompt_are_listed_sound_first_then_pictures_then_video() -> None:
    frames = numpy.zeros((2, 4, 6, 3), numpy.uint8)
    picture = Image.new("L", (6, 4), 255)
    media = payload(
        {
            "prompt": "what?",
            "multi_modal_data": {"video": frames, "image": [picture, picture], "audio": (SAMPLES, 16_000)},
        }
    )["media"]
    assert isinstance(media, list)
    assert [part["type"] for part in media] == ["audio", "image", "image", "video"]
    sound, image, _, video = media
    assert (
        sound["audio"] == Array("float32", (16_000,), memoryview(SAMPLES.tobytes())) and sound["sample_rate"] == 16_000
    )
    assert image["image"].shape == (4, 6, 3) and set(bytes(image["image"].data)) == {255}
    assert video["frames"].shape == (2, 4, 6, 3) and video["fps"] == 2.0


def test_media_may_be_files(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(audio_file(tone(samples=480, rate=48_000)))
    (tmp_path / "a.png").write_bytes(image_file((6, 4)))
    (tmp_path / "a.mp4").write_bytes(video_file())
    given = {"audio": tmp_path / "a.wav", "image": str(tmp_path / "a.png"), "video": tmp_path / "a.mp4"}
    media = payload({"prompt": "what?", "multi_modal_data": given})["media"]
    assert isinstance(media, list)
    sound, image, video = media
    assert (sound["audio"].shape, sound["sample_rate"]) == ((480,), 48_000)
    assert image["image"].shape == (4, 6, 3)
    assert video["frames"].shape[3] == 3 and video["fps"] > 0


def test_messages_are_those_of_the_chat_endpoint_with_media_as_objects() -> None:
    content = [{"type": "text", "text": "what?"}, {"type": "image", "image": numpy.zeros((4, 6, 3), numpy.uint8)}]
    messages = payload({"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": content}]})[
        "messages"
    ]
    assert isinstance(messages, list)
    assert messages[0] == {"role": "system", "content": [{"type": "text", "text": "be brief"}]}
    assert messages[1]["content"][1]["image"].shape == (4, 6, 3)


def test_a_cloned_voice_comes_from_its_sound_and_not_from_a_name() -> None:
    spoken = payload(
        {"input": "a fox", "task_type": "Base", "ref_audio": (SAMPLES, 24_000), "ref_text": "so"},
        Reading.SPEAK,
        SPEAKER,
    )
    assert "voice" not in spoken
    assert spoken["ref_sample_rate"] == 24_000 and isinstance(spoken["ref_audio"], Array)


@pytest.mark.parametrize(
    ("prompt", "param", "word"),
    [
        (7, "prompt", "int"),
        ("  ", "prompt", "says something"),
        ({"promt": "x"}, "promt", 'did you mean "prompt"'),
        ({}, "prompt", "none of them"),
        ({"prompt": "x", "messages": []}, "prompt", "prompt, messages"),
        ({"prompt": "x", "multi_modal_data": {"imgae": 1}}, "multi_modal_data.imgae", 'did you mean "image"'),
        ({"prompt": "x", "multi_modal_data": {"image": SAMPLES}}, "multi_modal_data.image", "float32[16000]"),
        ({"prompt": "x", "multi_modal_data": {"audio": SAMPLES}}, "multi_modal_data.audio", "sample rate"),
        (
            {"prompt": "x", "multi_modal_data": {"audio": "gone.wav"}},
            "multi_modal_data.audio",
            "gone.wav: No such file",
        ),
        ({"prompt_token_ids": [1], "multi_modal_data": {"audio": (SAMPLES, 1)}}, "multi_modal_data", "not as tokens"),
        ({"messages": [{"content": "x"}]}, "messages[0]", "role"),
        ({"messages": [{"role": "user", "content": [{"type": "file"}]}]}, "messages[0].content[0]", "a part is"),
    ],
)
def test_a_wrong_prompt_is_refused_by_its_key(prompt: Any, param: str, word: str) -> None:
    error = refused(prompt)
    assert error.param == param
    assert word in error.message


def test_a_voice_that_the_model_does_not_have_is_refused_with_those_it_has() -> None:
    error = refused({"input": "x", "voice": "bob"}, Reading.SPEAK, SPEAKER)
    assert error.param == "voice" and "Vivian, Ryan" in error.message


def test_what_another_kind_of_model_would_read_is_refused() -> None:
    assert refused({"prompt": "x", "voice": "Ryan"}, Reading.PAINT, PAINTER).param == "voice"
    assert refused({"prompt": "x", "negative_prompt": "y"}).param == "negative_prompt"
