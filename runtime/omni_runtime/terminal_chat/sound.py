"""Files of what was spoken."""

import struct
from pathlib import Path

RIFF_SIZE_AT, DATA_SIZE_AT, HEADER_BYTES = 4, 40, 44


def numbered(path: Path, answer: int) -> Path:
    """A file for each answer: hello.wav, hello-2.wav and so on."""
    return path if answer == 1 else path.with_stem(f"{path.stem}-{answer}")


def whole_file(data: bytes, path: Path) -> bytes:
    """A streamed WAV file does not know its length; now it does."""
    if path.suffix.lower() != ".wav" or len(data) < HEADER_BYTES:
        return data
    file = bytearray(data)
    struct.pack_into("<I", file, RIFF_SIZE_AT, len(data) - 8)
    struct.pack_into("<I", file, DATA_SIZE_AT, len(data) - HEADER_BYTES)
    return bytes(file)
