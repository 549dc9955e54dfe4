"""What `omni chat` was asked to do, read once from the command line."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_URL = "http://127.0.0.1:8000"
FORMATS: Mapping[str, str] = {
    ".wav": "wav",
    ".mp3": "mp3",
    ".flac": "flac",
    ".ogg": "opus",
    ".opus": "opus",
    ".aac": "aac",
    ".pcm": "pcm16",
}
"""How an answer's sound is asked for, by the ending of the file that it goes to."""


class ChatError(Exception):
    """Why `omni chat` cannot go on, or why one answer failed, in words for the person at the terminal."""


@dataclass(frozen=True)
class ChatSettings:
    url: str = DEFAULT_URL
    """Without /v1."""
    model: str | None = None
    """None: the first one that is served there."""
    api_key: str | None = None
    voice: str | None = None
    save: Path | None = None
    """Where the answer's sound goes."""
    player: tuple[str, ...] | None = None
    """The command that plays it."""
    prompt: str | None = None
    """None: a conversation."""
    system: str | None = None
    images: tuple[Path, ...] = ()
    sounds: tuple[Path, ...] = ()
    sampling: Mapping[str, int | float] | None = None

    @property
    def wants_sound(self) -> bool:
        return self.save is not None or self.player is not None

    @property
    def audio_format(self) -> str:
        return FORMATS[self.save.suffix.lower()] if self.save else "wav"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--url", default=DEFAULT_URL, help="where the model is served (default: %(default)s)")
    parser.add_argument("--model", help="its name (default: the first one that is served there)")
    parser.add_argument("--api-key", help="if the model asks for one")
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="say this, print the answer and end")
    parser.add_argument("--system", metavar="TEXT", help="what the model is told before the conversation")
    parser.add_argument(
        "--image", type=Path, action="append", default=[], metavar="FILE", help="goes with what is said first"
    )
    parser.add_argument(
        "--audio", type=Path, action="append", default=[], metavar="FILE", help="goes with what is said first"
    )
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help=f"let it speak, into this file ({', '.join(FORMATS)})"
    )
    parser.add_argument("--play", action="store_true", help="let it speak, and play it by aplay, ffplay or play")
    parser.add_argument("--voice", help="whose voice, of those the model has; needs --play or --save")
    parser.add_argument("--max-tokens", type=int, help="most tokens of an answer")
    parser.add_argument("--temperature", type=float, help="0 takes the likeliest token each time")
    parser.add_argument("--seed", type=int, help="the same seed gives the same answer")


def settings_from(arguments: Namespace, player: Callable[[], tuple[str, ...]]) -> ChatSettings:
    """`player` finds one, and is asked only if there is something to play. Raises ChatError."""
    if arguments.save is not None and arguments.save.suffix.lower() not in FORMATS:
        raise ChatError(f"--save {arguments.save}: its ending must be one of {', '.join(FORMATS)}")
    if arguments.voice is not None and arguments.save is None and not arguments.play:
        raise ChatError("--voice needs --play or --save: what is spoken has to go somewhere")
    if arguments.play and arguments.save is not None and arguments.save.suffix.lower() != ".wav":
        raise ChatError(f"--save {arguments.save}: with --play, its ending must be .wav, which every player reads")
    given = {name: getattr(arguments, name) for name in ("max_tokens", "temperature", "seed")}
    return ChatSettings(
        url=arguments.url.rstrip("/").removesuffix("/v1"),
        model=arguments.model,
        api_key=arguments.api_key,
        voice=arguments.voice,
        save=arguments.save,
        player=player() if arguments.play else None,
        prompt=arguments.prompt,
        system=arguments.system,
        images=tuple(arguments.image),
        sounds=tuple(arguments.audio),
        sampling={name: value for name, value in given.items() if value is not None},
    )
