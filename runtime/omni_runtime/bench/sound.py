"""Measures sound as it comes: how long what a WAV stream, or raw samples, hold is."""

import struct

RIFF, DATA = b"RIFF", b"data"
FORMAT_ENDS = 36
RAW_RATE, RAW_FRAME_BYTES = 24_000, 2
"""Of samples without a header, as the official API sends them."""
LONGEST_HEADER = 4096


class SoundMeter:
    """Some servers send one stream, others a whole file with each chunk: a header begins anew wherever one comes."""

    def __init__(self) -> None:
        self.frames = 0
        self.seconds = 0.0
        self._rate, self._frame_bytes = RAW_RATE, RAW_FRAME_BYTES
        self._kept = b""

    def add(self, data: bytes) -> None:
        self._kept += data
        if self._kept[:4] and RIFF.startswith(self._kept[:4]) and not self._read_header():
            return
        frames = len(self._kept) // self._frame_bytes
        self._kept = self._kept[frames * self._frame_bytes :]
        self.frames += frames
        self.seconds += frames / self._rate

    def _read_header(self) -> bool:
        """False as long as it is not there. Raises ValueError if it never will be."""
        at = self._kept.find(DATA, FORMAT_ENDS, LONGEST_HEADER)
        if at < 0 or len(self._kept) < at + 8:
            if len(self._kept) > LONGEST_HEADER:
                raise ValueError("the sound is no WAV file")
            return False
        channels, self._rate = struct.unpack_from("<HI", self._kept, 22)
        (bits,) = struct.unpack_from("<H", self._kept, 34)
        self._frame_bytes = max(1, channels * bits // 8)
        self._kept = self._kept[at + 8 :]
        return True
