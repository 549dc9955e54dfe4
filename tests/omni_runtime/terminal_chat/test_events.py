import base64
import json
from typing import Any

import pytest

from omni_runtime.terminal_chat.events import NOTHING, Heard, heard_in, words_of
from omni_runtime.terminal_chat.settings import ChatError


def line(**delta: Any) -> str:
    return f"data: {json.dumps({'choices': [{'delta': delta}]})}"


def test_words_and_sound_are_read_from_their_deltas() -> None:
    assert heard_in(line(content="a fox")) == Heard(text="a fox")
    assert heard_in(line(audio={"data": base64.b64encode(b"RIFF").decode()})) == Heard(sound=b"RIFF")
    assert heard_in(line(audio_error={"message": "the vocoder is away"})) == Heard(no_sound="the vocoder is away")


@pytest.mark.parametrize("quiet", ["", ": ping", "event: error", "data: [DONE]", 'data: {"choices": []}'])
def test_what_says_nothing_is_passed_over(quiet: str) -> None:
    assert heard_in(quiet) is NOTHING


def test_an_answer_that_breaks_off_raises_the_servers_words() -> None:
    with pytest.raises(ChatError, match="the thinker is gone"):
        heard_in('data: {"error": {"message": "the thinker is gone", "code": "stage_failed"}}')


def test_an_error_that_is_not_ours_is_shown_as_it_came() -> None:
    assert words_of("<html>502</html>") == "the server said '<html>502</html>'"
