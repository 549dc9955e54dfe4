"""Whatever is wrong with a speech request is refused before any stage sees it, with the field and a way out."""

from typing import Any

import openai as sdk
import pytest
from httpx2 import Client
from openai import OpenAI

from tests.api.test_wrong_requests import error_of
from tests.support.fake_chain import MODEL as PAINTER
from tests.support.fake_omni import MODEL as CHATTER
from tests.support.fake_omni import SPEECH_MODEL
from tests.support.media_files import audio_file, data_url, tone

PATH = "/v1/audio/speech"
CLIP = data_url(audio_file(tone(100)))

WRONG_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"input": ""}, "input", "at least 1 character"),
    ({"input": " \n"}, "input", "white space"),
    ({"input": ["a"]}, "input", "valid string"),
    ({"input": "x" * 32_001}, "input", "32001 characters are more than this model's limit of 32000"),
    ({"voice": "nobody"}, "voice", 'there is no voice "nobody"; use vivian, ryan'),
    ({"voice": "../../etc/passwd"}, "voice", "use vivian, ryan"),
    ({"voice": ""}, "voice", "at least 1 character"),
    ({"voice": {"name": "ryan"}}, "voice", "valid string"),
    ({"response_format": "ogg"}, "response_format", "'mp3', 'opus'"),
    ({"speed": 0.2}, "speed", "greater than or equal to 0.25"),
    ({"speed": 4.1}, "speed", "less than or equal to 4"),
    ({"speed": "fast"}, "speed", "valid number"),
    ({"stream_format": "json"}, "stream_format", "'audio' or 'sse'"),
    ({"stream": 1}, "stream", "valid boolean"),
    ({"instructions": "x" * 501}, "instructions", "at most 500 characters"),
    ({"task_type": "Clone"}, "task_type", "'CustomVoice', 'VoiceDesign' or 'Base'"),
    ({"task_type": "VoiceDesign"}, "instructions", "which voice is to be designed"),
    ({"task_type": "Base"}, "ref_audio", "clones the voice that it holds"),
    ({"task_type": "CustomVoice", "ref_audio": CLIP}, "ref_audio", 'only task_type "Base" clones a voice'),
    ({"ref_audio": CLIP}, "ref_text", "or set x_vector_only_mode"),
    ({"ref_audio": CLIP, "x_vector_only_mode": False}, "ref_text", "say what is said"),
    ({"ref_text": "hello"}, "ref_text", "ref_audio, which is missing"),
    ({"x_vector_only_mode": True}, "x_vector_only_mode", "ref_audio, which is missing"),
    ({"ref_audio": "data:;base64,aGk=", "ref_text": "hi"}, "ref_audio", "cannot be read as audio"),
    ({"ref_audio": "http://127.0.0.1/a.wav", "ref_text": "hi"}, "ref_audio", "not public"),
    ({"ref_audio": "file:///etc/passwd", "ref_text": "hi"}, "ref_audio", "no file below a folder"),
    ({"language": "Klingon"}, "language", "'Auto'"),
    ({"max_new_tokens": 0}, "max_new_tokens", "greater than or equal to 1"),
    ({"seed": -1}, "seed", "greater than or equal to 0"),
    ({"sampling_params_list": [{}]}, "sampling_params_list", "one object for each stage (talker, vocoder), got 1"),
    ({"instruction": "calm"}, "instruction", 'did you mean "instructions"?'),
    ({"model": 5}, "model", "valid string"),
]


@pytest.fixture(scope="module")
def http(reading_url: str) -> Client:
    return Client(base_url=reading_url, timeout=30, trust_env=False)


@pytest.mark.case("runtime:A10", "runtime:Q2", "runtime:Q5")
@pytest.mark.parametrize(("fields", "param", "words"), WRONG_FIELDS, ids=lambda value: str(value)[:40])
def test_a_wrong_field_is_refused_by_name(http: Client, fields: dict[str, Any], param: str, words: str) -> None:
    error = error_of(http.post(PATH, json={"input": "hello", **fields}), 400)
    assert (error["param"], error["code"], error["type"]) == (param, "invalid_request", "invalid_request_error")
    assert words in error["message"]


def test_a_missing_input_is_named(http: Client) -> None:
    assert error_of(http.post(PATH, json={"voice": "ryan"}), 400)["param"] == "input"


def test_another_model_is_not_found(reader: OpenAI) -> None:
    with pytest.raises(sdk.NotFoundError) as caught:
        reader.audio.speech.create(model="tts-1", voice="ryan", input="hello")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_models_that_paint_or_chat_say_what_they_do_instead(openai: OpenAI, talker: OpenAI, reader: OpenAI) -> None:
    with pytest.raises(sdk.BadRequestError, match="does not speak; it makes image") as caught:
        openai.audio.speech.create(model=PAINTER, voice="ryan", input="hello")
    assert caught.value.param == "model"
    with pytest.raises(sdk.BadRequestError, match="use /v1/chat/completions"):
        talker.audio.speech.create(model=CHATTER, voice="ryan", input="hello")
    with pytest.raises(sdk.BadRequestError, match="makes no text, only audio"):
        reader.chat.completions.create(model=SPEECH_MODEL, messages=[{"role": "user", "content": "hello"}])
