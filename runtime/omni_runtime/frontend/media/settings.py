"""From where media may be fetched, and how much of it one request may bring."""

import argparse
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20


@dataclass(frozen=True)
class MediaSettings:
    """Pixels of an image are bounded by the model's `limits.maxImagePixels`."""

    folders: tuple[Path, ...] = ()
    """Whose files `file:` URLs may name."""
    allow_private_addresses: bool = False
    max_bytes: int = 64 * MIB
    fetch_timeout_s: float = 30.0
    decode_timeout_s: float = 30.0
    max_audio_seconds: float = 600.0
    max_video_seconds: float = 600.0
    max_video_frames: int = 32
    max_video_frame_pixels: int = 448 * 448
    """Larger frames are scaled down: what they say in a clip is in their number."""


DEFAULTS = MediaSettings()
NUMBERS = {
    "max_bytes": "most bytes of one file",
    "fetch_timeout_s": "seconds for fetching one file",
    "decode_timeout_s": "seconds for decoding one file",
    "max_audio_seconds": "longest sound",
    "max_video_seconds": "longest video",
    "max_video_frames": "most frames that are read of a video",
    "max_video_frame_pixels": "most pixels of each of them; larger ones are scaled down",
}
"""Fields with a flag of their own, and what it is for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--media-folder",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="requests may name files below it as file: URLs; may be given several times (default: none)",
    )
    parser.add_argument(
        "--media-allow-private-addresses",
        action="store_true",
        help="fetch media of requests also from private and loopback addresses: whoever may ask the model can then "
        "reach what this machine can",
    )
    for name, what in NUMBERS.items():
        default = getattr(DEFAULTS, name)
        parser.add_argument(_flag(name), type=type(default), default=default, help=f"{what} (default: %(default)s)")


def settings_from(arguments: argparse.Namespace) -> MediaSettings:
    return MediaSettings(
        folders=tuple(folder.resolve() for folder in arguments.media_folder),
        allow_private_addresses=arguments.media_allow_private_addresses,
        **{name: getattr(arguments, _flag(name).strip("-").replace("-", "_")) for name in NUMBERS},
    )


def arguments_of(settings: MediaSettings) -> tuple[str, ...]:
    """What gives another process the same settings; nothing for those that are as by default."""
    folders = [argument for folder in settings.folders for argument in ("--media-folder", str(folder))]
    private = ["--media-allow-private-addresses"] if settings.allow_private_addresses else []
    changed = [name for name in NUMBERS if getattr(settings, name) != getattr(DEFAULTS, name)]
    numbers = [argument for name in changed for argument in (_flag(name), str(getattr(settings, name)))]
    return (*folders, *private, *numbers)


def _flag(name: str) -> str:
    """As of other settings, seconds are said in the help alone."""
    return f"--media-{name.removesuffix('_s').replace('_', '-')}"
