import pytest

from omni_runtime.terminal_chat.player import find_player
from omni_runtime.terminal_chat.settings import ChatError


def test_the_first_player_that_is_installed_is_taken() -> None:
    installed = {"ffplay": "/usr/bin/ffplay", "play": "/usr/bin/play"}
    assert find_player(installed.get)[0] == "/usr/bin/ffplay"


def test_without_a_player_the_way_out_is_told() -> None:
    with pytest.raises(ChatError, match="none of aplay, ffplay, play is installed here"):
        find_player(lambda name: None)
