"""Rows of requests on their way out of vLLM's process: one message for each step.

From a device they come by way of page-locked memory, and leave when the step's tokens do. There is no thread for it:
each of its turns would keep vLLM's from the next step, which takes the host longer than the device.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import torch
import zmq

from omni_runtime.engines.ar.state_rows import Integers

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
        header = Header(table, tensors[0], located or {})
        if tensors[0].device.type == "cpu":
            self._send(header, [_bytes(tensor) for tensor in tensors])
            return
        pages = [self._pages.filled(_bytes(tensor)) for tensor in tensors]
        arrived = torch.cuda.Event()
        arrived.record()
        self._left.append(Left(header, pages, arrived))

    def take_left(self) -> "list[Left]":
        """What steps have left here since this was called."""
        left, self._left = self._left, []
        return left

    def send_left(self, messages: "Sequence[Left]") -> None:
        """Waits for the device, if it is not done."""
        for left in messages:
            left.arrived.synchronize()
            self._send(left.header, [page.content for page in left.pages])
            self._pages.give_back(left.pages)

    def _send(self, header: "Header", contents: Sequence[torch.Tensor]) -> None:
        self._socket.send_multipart([*header.frames(), *(content.numpy() for content in contents)])


class Header:
    """What the rows of a step are, and whose."""

    def __init__(self, table: Integers, like: torch.Tensor, located: Located) -> None:
        self._table = table
        self._like = like.dtype, like.shape[-1]
        self._located = located

    def frames(self) -> list[bytes]:
        """The table is by itself, as it is."""
        head = _head(*self._like, list(self._located.items())) if self._located else _plain_head(*self._like)
        return [head, self._table.tobytes()]


@lru_cache
def _plain_head(dtype: torch.dtype, width: int) -> bytes:
    return _head(dtype, width, [])


def _head(dtype: torch.dtype, width: int, located: Sequence[tuple[int, Sequence[Sequence[int]]]]) -> bytes:
    return json.dumps({"dtype": str(dtype).removeprefix("torch."), "width": width, "located": located}).encode()


@dataclass(frozen=True)
class Page:
    """`content` is the part of `memory` that a copy fills."""

    memory: torch.Tensor
    content: torch.Tensor


@dataclass(frozen=True)
class Left:
    """A step's message, whose pages are full once the event has happened."""

    header: Header
    pages: Sequence[Page]
    arrived: Any


class Pages:
    """Page-locked memory in a few sizes. Making a piece takes longer than filling it, so each one is used again."""

    def __init__(self) -> None:
        self._free: defaultdict[int, list[torch.Tensor]] = defaultdict(list)

    def filled(self, content: torch.Tensor) -> Page:
        """It will be, once the device comes to it."""
        size_bytes = 1 << (content.numel() - 1).bit_length()
        free = self._free[size_bytes]
        memory = free.pop() if free else torch.empty(size_bytes, dtype=torch.uint8, pin_memory=True)
        return Page(memory, memory[: content.numel()].copy_(content, non_blocking=True))

    def give_back(self, pages: Sequence[Page]) -> None:
        for page in pages:
            self._free[page.memory.numel()].append(page.memory)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().view(torch.uint8).view(-1)
