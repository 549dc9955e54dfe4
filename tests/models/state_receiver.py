"""The worker's end of the way out of vLLM's process, as plainly as can be."""

import itertools
import json

import zmq

from omni_contract.wire.payload import DTYPES
from omni_runtime.engines.ar.state_frames import IN_MESSAGE, read_head
from omni_runtime.engines.ar.state_ring import RingReader, Way

NUMBERS = itertools.count()


class StateReceiver:
    """Of one sender, and one layer."""

    def __init__(self) -> None:
        self._ring = RingReader()
        self._socket = zmq.Context.instance().socket(zmq.PULL)
        # A name is free again a little after its socket was closed.
        self._socket.bind(f"inproc://states-{next(NUMBERS)}")
        self.way = Way(self._socket.LAST_ENDPOINT.decode(), self._ring.path)

    def received(self) -> tuple[list[list[int]], bytes]:
        """The next step's table and rows."""
        assert self.has_more(2000)
        head, *frames = self._socket.recv_multipart()
        begin, lines, text = read_head(memoryview(head))
        if begin == IN_MESSAGE:
            return lines, b"".join(frames)
        kind = json.loads(text)
        size_bytes = sum(rows for _, _, rows in lines) * kind["width"] * DTYPES[kind["dtype"]]
        step = bytes(self._ring.step(begin, size_bytes))
        self._ring.free(begin + size_bytes)
        return lines, step

    def has_more(self, patience_ms: int = 0) -> bool:
        return bool(self._socket.poll(patience_ms))

    def close(self) -> None:
        self._socket.close(linger=0)
        self._ring.close()
