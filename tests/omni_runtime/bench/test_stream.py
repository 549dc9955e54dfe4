import base64
import json
from typing import Any

import pytest

from omni_runtime.bench.outcome import Outcome
from omni_runtime.bench.sound import SoundMeter
from omni_runtime.bench.stream import Reader
from tests.support.media_files import audio_file, tone

WAV = audio_file(tone(4800, rate=24_000))


class Listening:
    """A reader whose clock goes on by a second with each line."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.outcome = Outcome(0.0)
        self.reader = Reader(self.outcome, lambda: self.now_s)

    def hears(self, *events: Any) -> Outcome:
        for event in events:
            self.now_s += 1
            self.reader.line(event if isinstance(event, str) else f"data: {json.dumps(event)}")
        return self.outcome


def chunk(usage: Any = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}], "usage": usage}


def test_text_and_sound_of_a_chat_are_told_apart() -> None:
    sound = base64.b64encode(WAV).decode()
    usage = {
        "prompt_tokens": 7,
        "completion_tokens": 52,
        "completion_tokens_details": {"text_tokens": 2, "audio_tokens": 50},
    }
    heard = Listening().hears(
        chunk(role="assistant", content=""),
        chunk(content="a "),
        chunk(audio={"id": "x", "transcript": "a "}),
        chunk(audio={"id": "x", "data": sound}),
        chunk(content="fox"),
        {"choices": [], "usage": usage},
        "data: [DONE]",
    )
    assert (heard.text, heard.text_at_s, heard.audio_at_s) == ("a fox", [2.0, 5.0], 4.0)
    assert (heard.input_tokens, heard.output_tokens) == (7, 2)
    assert (heard.audio_frames, heard.audio_s) == (4800, 0.2)


def test_without_usage_chunks_of_text_stand_for_tokens() -> None:
    assert Listening().hears(chunk(content="a "), chunk(content="fox")).output_tokens == 2


def test_sound_in_the_content_of_another_server_is_sound() -> None:
    sound = {**chunk(content=base64.b64encode(WAV).decode()), "modality": "audio"}
    heard = Listening().hears({**chunk(content="fox"), "modality": "text"}, sound, sound)
    assert (heard.text, heard.audio_frames, heard.audio_at_s) == ("fox", 9600, 2.0)


def test_a_completion_has_its_text_in_the_choice() -> None:
    assert Listening().hears({"choices": [{"index": 0, "text": "fox"}]}).text == "fox"


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ({"error": {"message": "the stage died"}}, "the stage died"),
        (chunk(audio_error={"message": "the voice is away"}), "no audio: the voice is away"),
    ],
)
def test_an_error_in_the_stream_is_the_requests(event: Any, error: str) -> None:
    assert Listening().hears(chunk(content="a"), event).error == error


def test_an_answer_has_ended_once_it_says_so() -> None:
    listening = Listening()
    listening.hears(chunk(content="a"), ": a comment", "")
    assert not listening.reader.has_ended
    listening.hears("data: [DONE]")
    assert listening.reader.has_ended


@pytest.mark.parametrize("size", [1, 7, 44, 45, 10_000])
def test_a_wav_stream_is_measured_however_it_is_cut(size: int) -> None:
    meter = SoundMeter()
    for start in range(0, len(WAV), size):
        meter.add(WAV[start : start + size])
    assert (meter.frames, meter.seconds) == (4800, pytest.approx(0.2))


def test_samples_without_a_header_are_as_the_official_api_has_them() -> None:
    meter = SoundMeter()
    meter.add(bytes(24_001))
    meter.add(bytes(23_999))
    assert (meter.frames, meter.seconds) == (24_000, 1.0)


def test_what_only_begins_like_a_file_is_refused() -> None:
    with pytest.raises(ValueError, match="no WAV file"):
        SoundMeter().add(b"RIFF" + bytes(5000))
