"""A thinker on vLLM behind `omni serve`: over the SDK, words, pictures and sound get the answer of transformers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from openai import BadRequestError, OpenAI

from tests.layout.source import CHECKOUT
from tests.support.media_files import RATE, audio_file, tone
from tests.support.serve_process import serving
from tests.support.thinker_chats import CHATS, LENGTH, expected_answers, greedy, message, sound_file

ASKED = greedy("tiny-thinker")
LONGEST = 480


@pytest.fixture(scope="module")
def expected(models: Path) -> list[str]:
    return expected_answers(models / "qwen2.5-omni", models)


@pytest.fixture(scope="module")
def client(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    file = str(CHECKOUT / "examples" / "tiny-thinker.yaml")
    # The file allows 512 tokens; an argument of vLLM lies over it.
    flags = ("--volume", f"models={models}", "--max-model-len", str(LONGEST))
    with serving(file, *flags, folder=tmp_path_factory.mktemp("serve")) as serve:
        yield OpenAI(base_url=f"{serve.url()}/v1", api_key="none", max_retries=0)


@pytest.mark.parametrize("number", range(len(CHATS)))
def test_an_answer_equals_transformers_whole_and_streamed(client: OpenAI, expected: list[str], number: int) -> None:
    whole = client.chat.completions.create(messages=message(CHATS[number]), **ASKED)
    streamed = client.chat.completions.create(messages=message(CHATS[number]), stream=True, **ASKED)
    assert whole.choices[0].message.content == expected[number]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed if chunk.choices) == expected[number]
    assert whole.usage is not None and whole.usage.completion_tokens == LENGTH


def test_what_is_said_is_written_down_as_a_chat_with_the_same_words_says(client: OpenAI) -> None:
    """A random model hears nothing; that it is asked in these words, and with all of the sound, is what can be seen."""
    words = "Transcribe the English audio into text. Answer with nothing else."
    chat = message([{"type": "audio", "name": "sound"}, {"type": "text", "text": words}])
    asked = {"model": "tiny-thinker", "temperature": 0}
    expected = client.chat.completions.create(messages=chat, max_completion_tokens=6, **asked)  # type: ignore[call-overload]
    heard = client.audio.transcriptions.create(
        file=("sound.wav", sound_file()), language="en", extra_body={"max_completion_tokens": 6}, **asked
    )
    assert heard.text == expected.choices[0].message.content
    assert heard.usage.input_tokens == expected.usage.prompt_tokens


def test_what_the_model_cannot_do_is_told_by_its_field_and_hurts_nobody(client: OpenAI, expected: list[str]) -> None:
    too_long = [{"type": "text", "text": "fox " * 600}]
    with pytest.raises(BadRequestError) as refused:
        client.chat.completions.create(messages=message(too_long), **ASKED)
    assert refused.value.param == "messages" and f"it may have {LONGEST} at most" in str(refused.value)
    with pytest.raises(BadRequestError) as refused:
        client.audio.transcriptions.create(model="tiny-thinker", file=("long.wav", audio_file(tone(60 * RATE))))
    assert refused.value.param == "file"
    again = client.chat.completions.create(messages=message(CHATS[0]), **ASKED)
    assert again.choices[0].message.content == expected[0]
