"""Rows of requests on their way out of vLLM's process: one message for each step.

From a device they come by way of page-locked memory, and leave when the step's tokens do. There is no thread for it:
each of its turns would keep vLLM's from the next step, which takes the host longer than the device.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeAlias

import numpy
import torch
import zmq

from omni_runtime.engines.ar.state_frames import lines_of_frames
from omni_runtime.engines.ar.state_rows import COUNT, Integers

MORE = int(zmq.SNDMORE)
"""Of a message; as a number, since flags are slow to put together."""
Bytes: TypeAlias = "numpy.ndarray[Any, numpy.dtype[numpy.uint8]]"
Kind: TypeAlias = tuple[torch.dtype, int, int]
"""The dtype of rows, how many have room, and their width."""
Located: TypeAlias = Mapping[int, Sequence[Sequence[int]]]
"""Where prompts with media are, by the requests' keys: each token in time, height and width."""


class StateSocket:
    def __init__(self, address: str) -> None:
        self._socket: Any = zmq.Context.instance().socket(zmq.PUSH)
        self._socket.connect(address)
        self._pages = Pages()
        self._left: list[Left] = []

    def send(self, table: Integers, tensors: Sequence[torch.Tensor], located: Located | None = None) -> None:
        """Tensors of shape (rows, width), those of one request after those of another: one for each layer.

        From a device they are on their way from now on; whoever sees the end of the step calls `send_left` then.
        """
        header, device = Header(table, tensors[0], located or {}), tensors[0].device
        if device.type == "cpu":
            self._send(header, [_bytes(tensor) for tensor in tensors])
            return
        pages = [self._pages.filled(tensor) for tensor in tensors]
        pages[-1].filled.record(torch.cuda.current_stream(device))
        self._left.append(Left(header, pages))

    def take_left(self) -> "list[Left]":
        """What steps have left here since this was called."""
        left, self._left = self._left, []
        return left

    def send_left(self, messages: "Sequence[Left]") -> None:
        """Waits for the device, if it is not done."""
        for left in messages:
            left.pages[-1].filled.synchronize()
            self._send(left.header, [page.content for page in left.pages])
            self._pages.give_back(left.pages)

    def _send(self, header: "Header", contents: Sequence[Bytes]) -> None:
        # Frame by frame: `send_multipart` looks at all of them first.
        self._socket.send(header.text, MORE)
        *others, last = [header.table, *header.cut(contents)]
        for frame in others:
            self._socket.send(frame, MORE)
        self._socket.send(last)


class Header:
    """What the rows of a step are, and whose. The table is by itself, as it is."""

    def __init__(self, table: Integers, like: torch.Tensor, located: Located) -> None:
        self.table = table
        self._like = like.dtype, like.shape[-1]
        self._row_bytes = like.element_size() * like.shape[-1]
        self._located = located

    @property
    def text(self) -> bytes:
        return _head(*self._like, list(self._located.items())) if self._located else _plain_head(*self._like)

    def cut(self, contents: Sequence[Bytes]) -> Iterator[Bytes]:
        """The rows as frames, those of one layer after those of another."""
        sizes_bytes = (self.table[:, COUNT] * self._row_bytes).tolist()
        ends = [0, *accumulate(sizes_bytes)]
        pieces = [slice(ends[lines.start], ends[lines.stop]) for lines in lines_of_frames(sizes_bytes)]
        return (content[piece] for content in contents for piece in pieces)


@lru_cache
def _plain_head(dtype: torch.dtype, width: int) -> bytes:
    return _head(dtype, width, [])


def _head(dtype: torch.dtype, width: int, located: Sequence[tuple[int, Sequence[Sequence[int]]]]) -> bytes:
    return json.dumps({"dtype": str(dtype).removeprefix("torch."), "width": width, "located": located}).encode()


class Page:
    """Page-locked memory for so many rows. `content` are its bytes, of which what was filled comes first."""

    def __init__(self, dtype: torch.dtype, room: int, width: int) -> None:
        self.kind = dtype, room, width
        self.filled = torch.cuda.Event()
        self._memory = torch.empty((room, width), dtype=dtype, pin_memory=True)
        self.content = _bytes(self._memory)

    def fill(self, rows: torch.Tensor) -> None:
        """It will be full once the device comes to it."""
        self._memory[: len(rows)].copy_(rows, non_blocking=True)


@dataclass(frozen=True)
class Left:
    """A step's message, whose pages are full once the last one is."""

    header: Header
    pages: Sequence[Page]


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


def _bytes(tensor: torch.Tensor) -> Bytes:
    content: Bytes = tensor.detach().contiguous().view(torch.uint8).view(-1).numpy()
    return content
