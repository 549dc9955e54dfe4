"""Turns of a conversation: what is typed goes out, what is heard is printed as it comes."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from omni_runtime.terminal_chat.client import answer_to, find_model
from omni_runtime.terminal_chat.messages import Message, beginning, request, said
from omni_runtime.terminal_chat.player import Player, playing
from omni_runtime.terminal_chat.settings import ChatError, ChatSettings
from omni_runtime.terminal_chat.sound import numbered, whole_file

HELP = """/image FILE, /audio FILE   goes with what you say next
/reset                     begins anew
/quit                      ends, as Ctrl-D does; Ctrl-C ends an answer
"""


@dataclass
class Conversation:
    """`read` prompts for a line and raises EOFError at the end; `notes` are lines that are not the model's words."""

    settings: ChatSettings
    read: Callable[[str], str]
    words: TextIO
    notes: TextIO
    _model: str = ""
    _history: list[Message] = field(default_factory=list)
    _images: list[Path] = field(default_factory=list)
    _sounds: list[Path] = field(default_factory=list)
    _answers: int = 0

    def run(self) -> None:
        """One answer if there is a prompt, else until /quit. Raises ChatError for what a next line could not mend."""
        self._model = asyncio.run(find_model(self.settings))
        self._begin()
        self._images += self.settings.images
        self._sounds += self.settings.sounds
        if self.settings.prompt is not None:
            self._turn(self.settings.prompt)
            return
        self._note(f"you talk to {self._model}; /help tells what else there is")
        while (line := self._line()) is not None:
            try:
                self._take(line)
            except ChatError as error:
                self._note(str(error))
            except KeyboardInterrupt:
                self._note("\nstopped; the model does not remember this turn")

    def _line(self) -> str | None:
        """None at the end."""
        try:
            line = self.read("> ").strip()
        except (EOFError, KeyboardInterrupt):
            return None
        return None if line in ("/quit", "/exit") else line

    def _take(self, line: str) -> None:
        command, _, rest = line.partition(" ")
        match command:
            case "":
                return
            case "/reset":
                self._begin()
                self._note("forgotten")
            case "/image" | "/audio" if rest:
                (self._images if command == "/image" else self._sounds).append(_file(rest))
            case _ if command.startswith("/"):
                self._note(HELP.rstrip())
            case _:
                self._turn(line)

    def _turn(self, text: str) -> None:
        """Enters the history once it is answered. Its files are gone then, so a wrong one does not come back."""
        images, self._images = self._images, []
        sounds, self._sounds = self._sounds, []
        question = said(text, images, sounds)
        answer = asyncio.run(self._hear([*self._history, question]))
        self._history += [question, {"role": "assistant", "content": answer}]

    async def _hear(self, messages: list[Message]) -> str:
        """The words are the answer, even if its sound cannot be played."""
        text, sound = "", bytearray()
        asked = request(self.settings, self._model, messages)
        async with aclosing(answer_to(self.settings, asked)) as answer, self._player() as player:
            async for heard in answer:
                text += heard.text
                sound += heard.sound
                self._write(heard.text)
                if player is not None:
                    player.play(heard.sound)
                if heard.no_sound:
                    self._note(f"\nno sound: {heard.no_sound}")
            self._write("\n")
            self._save(bytes(sound))
            if player is not None:
                await self._played(player)
        return text

    def _player(self) -> AbstractAsyncContextManager[Player | None]:
        return nullcontext() if self.settings.player is None else playing(self.settings.player)

    async def _played(self, player: Player) -> None:
        try:
            await player.end()
        except ChatError as error:
            self._note(str(error))

    def _write(self, words: str) -> None:
        self.words.write(words)
        self.words.flush()

    def _save(self, sound: bytes) -> None:
        if self.settings.save is None or not sound:
            return
        self._answers += 1
        path = numbered(self.settings.save, self._answers)
        try:
            path.write_bytes(whole_file(sound, path))
        except OSError as exc:
            raise ChatError(f"{path}: {exc.strerror}") from exc
        self._note(f"saved {path}")

    def _begin(self) -> None:
        self._history = beginning(self.settings)
        self._images, self._sounds = [], []

    def _note(self, text: str) -> None:
        self.notes.write(f"{text}\n")
        self.notes.flush()


def _file(text: str) -> Path:
    path = Path(text.strip()).expanduser()
    if not path.is_file():
        raise ChatError(f"{path}: there is no such file")
    return path
