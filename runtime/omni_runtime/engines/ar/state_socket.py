"""Rows of requests on their way out of vLLM's process: one message for each step.

They lie in memory that the worker shares, or in the message where there is no room. From a device, the message leaves
when the step's tokens do. There is no thread for it: each of its turns would keep vLLM's from the next step, which
takes the host longer than the device.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy
import torch
import zmq

from omni_runtime.engines.ar.state_frames import IN_MESSAGE, head_of, pieces_of_frames
from omni_runtime.engines.ar.state_ring import RingWriter, Way
from omni_runtime.engines.ar.state_rows import COUNT, Integers

MORE = int(zmq.SNDMORE)
"""Of a message; as a number, since flags are slow to put together."""
Bytes: TypeAlias = "numpy.ndarray[Any, numpy.dtype[numpy.uint8]]"
Frame: TypeAlias = "bytes | Bytes"
Kind: TypeAlias = tuple[torch.dtype, int, int]
"""The dtype of rows, how many have room, and their width."""
Located: TypeAlias = Mapping[int, Sequence[Sequence[int]]]
"""Where prompts with media are, by the requests' keys: each token in time, height and width."""


class StateSocket:
    def __init__(self, way: Way, device: torch.device) -> None:
        self._socket: Any = zmq.Context.instance().socket(zmq.PUSH)
        self._socket.connect(way.socket)
        self._ring = RingWriter(way.ring)
        self._shared = torch.frombuffer(self._ring.room, dtype=torch.uint8)
        if device.type == "cuda":
            _lock(self._shared)
        self._pages = Pages()
        self._events: list[torch.cuda.Event] = []
        self._left: list[Left] = []

    def send(self, table: Integers, tensors: Sequence[torch.Tensor], located: Located | None = None) -> None:
        """Tensors of shape (rows, width), those of one request after those of another: one for each layer.

        From a device they are on their way from now on; whoever sees the end of the step calls `send_left` then.
        """
        device = tensors[0].device
        frames, pages = self._frames(table, tensors, located or {})
        if device.type == "cpu":
            self._send(frames)
            return
        filled = self._events.pop() if self._events else torch.cuda.Event()
        filled.record(torch.cuda.current_stream(device))
        self._left.append(Left(frames, pages, filled))

    def take_left(self) -> "list[Left]":
        """What steps have left here since this was called."""
        left, self._left = self._left, []
        return left

    def send_left(self, messages: "Sequence[Left]") -> None:
        """Waits for the device, if it is not done."""
        for left in messages:
            left.filled.synchronize()
            self._send(left.frames)
            self._events.append(left.filled)
            self._pages.give_back(left.pages)

    def _frames(
        self, table: Integers, tensors: Sequence[torch.Tensor], located: Located
    ) -> "tuple[Sequence[Frame], Sequence[Page]]":
        """Of the message, and the pages that it takes."""
        like = tensors[0]
        kind = like.dtype, like.shape[-1]
        head = _head(*kind, list(located.items())) if located else _plain_head(*kind)
        begin = self._ring.place(sum(tensor.nbytes for tensor in tensors))
        if begin is not None:
            self._share(begin, tensors)
            return (head_of(begin, table.tobytes(), head),), ()
        pages = [] if like.device.type == "cpu" else [self._pages.filled(tensor) for tensor in tensors]
        contents = [page.content for page in pages] or [_bytes(tensor) for tensor in tensors]
        cut = _cut(table, contents, like.element_size() * like.shape[-1])
        return (head_of(IN_MESSAGE, table.tobytes(), head), *cut), pages

    def _share(self, begin: int, tensors: Sequence[torch.Tensor]) -> None:
        start = begin % len(self._shared)
        for tensor in tensors:
            end = start + tensor.nbytes
            self._shared[start:end].view(tensor.dtype).view(tensor.shape).copy_(tensor, non_blocking=True)
            start = end

    def _send(self, frames: "Sequence[Frame]") -> None:
        # One by one: `send_multipart` looks at all of them first.
        *others, last = frames
        for frame in others:
            self._socket.send(frame, MORE)
        self._socket.send(last)


class Page:
    """Page-locked memory for so many rows. `content` are its bytes, of which what was filled comes first."""

    def __init__(self, dtype: torch.dtype, room: int, width: int) -> None:
        self.kind = dtype, room, width
        self._memory = torch.empty((room, width), dtype=dtype, pin_memory=True)
        self.content = _bytes(self._memory)

    def fill(self, rows: torch.Tensor) -> None:
        """It will be full once the device comes to it."""
        self._memory[: len(rows)].copy_(rows, non_blocking=True)


@dataclass(frozen=True)
class Left:
    """A step's message, which is whole once `filled` has happened."""

    frames: "Sequence[Frame]"
    pages: Sequence[Page]
    filled: torch.cuda.Event


class Pages:
    """In a few sizes. Making a page takes longer than filling it, so each one is used again."""

    def __init__(self) -> None:
        self._free: defaultdict[Kind, list[Page]] = defaultdict(list)

    def filled(self, rows: torch.Tensor) -> Page:
        count, width = rows.shape
        kind = rows.dtype, 1 << (count - 1).bit_length(), width
        free = self._free[kind]
        page = free.pop() if free else Page(*kind)
        page.fill(rows)
        return page

    def give_back(self, pages: Sequence[Page]) -> None:
        for page in pages:
            self._free[page.kind].append(page)


@lru_cache
def _plain_head(dtype: torch.dtype, width: int) -> bytes:
    return _head(dtype, width, [])


def _head(dtype: torch.dtype, width: int, located: Sequence[tuple[int, Sequence[Sequence[int]]]]) -> bytes:
    return json.dumps({"dtype": str(dtype).removeprefix("torch."), "width": width, "located": located}).encode()


def _cut(table: Integers, contents: Sequence[Bytes], row_bytes: int) -> Iterator[Bytes]:
    """The rows as frames, those of one layer after those of another."""
    pieces = pieces_of_frames((table[:, COUNT] * row_bytes).tolist())
    return (content[piece] for content in contents for piece in pieces)


def _bytes(tensor: torch.Tensor) -> Bytes:
    content: Bytes = tensor.detach().contiguous().view(torch.uint8).view(-1).numpy()
    return content


def _lock(memory: torch.Tensor) -> None:
    """So that a device writes there by itself. Raises CudaError."""
    runtime = torch.cuda.cudart()
    torch.cuda.check_error(runtime.cudaHostRegister(memory.data_ptr(), memory.nbytes, 0))
