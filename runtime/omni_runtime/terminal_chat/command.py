"""`omni chat`: talk to a served model."""

import sys
from argparse import Namespace

from omni_contract.cli.command import Command
from omni_runtime.terminal_chat.conversation import Conversation
from omni_runtime.terminal_chat.player import find_player
from omni_runtime.terminal_chat.settings import ChatError, add_arguments, settings_from

DONE, FAILED, STOPPED = 0, 1, 130


def run(arguments: Namespace) -> int:
    if sys.stdin.isatty():
        # Gives input() its line editing and its memory of what was typed.
        import readline  # noqa: F401
    try:
        Conversation(settings_from(arguments, find_player), _read, sys.stdout, sys.stderr).run()
    except ChatError as error:
        sys.stderr.write(f"omni chat: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        return STOPPED
    return DONE


def _read(prompt: str) -> str:
    """What is piped in is not prompted for."""
    return input(prompt if sys.stdin.isatty() else "")


command = Command(name="chat", help="talk to a served model from a terminal", configure=add_arguments, run=run)
