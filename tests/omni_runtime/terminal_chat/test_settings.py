from argparse import ArgumentParser
from pathlib import Path

import pytest

from omni_runtime.terminal_chat.settings import ChatError, ChatSettings, add_arguments, settings_from


def settings(*arguments: str) -> ChatSettings:
    parser = ArgumentParser()
    add_arguments(parser)
    return settings_from(parser.parse_args(arguments), lambda: ("aplay",))


def test_the_address_may_be_that_of_the_api() -> None:
    assert settings("--url", "http://host:1/v1/").url == "http://host:1"


def test_only_what_was_given_is_sampled_by() -> None:
    assert settings("--temperature", "0").sampling == {"temperature": 0.0}


@pytest.mark.parametrize(("file", "format"), [("a.WAV", "wav"), ("a.ogg", "opus"), ("a.pcm", "pcm16")])
def test_the_ending_of_the_file_says_the_format(file: str, format: str) -> None:
    assert settings("--save", file).audio_format == format
    assert settings("--save", file).save == Path(file)


def test_a_player_is_looked_for_only_if_there_is_something_to_play() -> None:
    assert settings().player is None and not settings().wants_sound
    assert settings("--play", "--voice", "ryan").player == ("aplay",)
    assert settings("--play", "--save", "a.wav").audio_format == settings("--play").audio_format == "wav"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--save", "a.txt"), ".wav"),
        (("--voice", "ryan"), "needs --play or --save"),
        (("--play", "--save", "a.mp3"), "with --play, its ending must be .wav"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments: tuple[str, ...], word: str) -> None:
    with pytest.raises(ChatError, match=word):
        settings(*arguments)
