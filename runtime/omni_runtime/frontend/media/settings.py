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
    _number(parser, "--media-max-bytes", int, DEFAULTS.max_bytes, "most bytes of one file")
    _number(parser, "--media-fetch-timeout", float, DEFAULTS.fetch_timeout_s, "seconds for fetching one file")
    _number(parser, "--media-decode-timeout", float, DEFAULTS.decode_timeout_s, "seconds for decoding one file")
    _number(parser, "--media-max-audio-seconds", float, DEFAULTS.max_audio_seconds, "longest sound")
    _number(parser, "--media-max-video-seconds", float, DEFAULTS.max_video_seconds, "longest video")
    _number(parser, "--media-max-video-frames", int, DEFAULTS.max_video_frames, "frames that are read of a video")


def settings_from(arguments: argparse.Namespace) -> MediaSettings:
    return MediaSettings(
        folders=tuple(arguments.media_folder),
        allow_private_addresses=arguments.media_allow_private_addresses,
        max_bytes=arguments.media_max_bytes,
        fetch_timeout_s=arguments.media_fetch_timeout,
        decode_timeout_s=arguments.media_decode_timeout,
        max_audio_seconds=arguments.media_max_audio_seconds,
        max_video_seconds=arguments.media_max_video_seconds,
        max_video_frames=arguments.media_max_video_frames,
    )


def _number(
    parser: argparse.ArgumentParser, flag: str, kind: type[int] | type[float], default: float, what: str
) -> None:
    parser.add_argument(flag, type=kind, default=default, help=f"{what} (default: %(default)s)")
