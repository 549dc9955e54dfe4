"""Rows of requests on their way out of vLLM's process: one message for each step.

From a device they come by way of page-locked memory; a thread waits for them and sends them, and the steps go on.
"""

import json
import queue
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
import zmq

IN_FLIGHT = 64
"""Steps whose rows may be on their way before the next one waits."""

OfRequest: TypeAlias = tuple[str, int, int]
"""A request's key, the first position that its rows are of, and how many they are."""
Located: TypeAlias = Mapping[str, Sequence[Sequence[int]]]
"""Where prompts with media are, by the requests' keys: each token in time, height and width."""


class StateSocket:
    def __init__(self, address: str) -> None:
        self._socket: Any = zmq.Context.instance().socket(zmq.PUSH)
        self._socket.connect(address)
        self._pages = Pages()
        self._coming: queue.Queue[Coming] = queue.Queue(IN_FLIGHT)
        self._thread: threading.Thread | None = None

    def send(
        self, requests: Sequence[OfRequest], tensors: Sequence[torch.Tensor], located: Located | None = None
    ) -> None:
        """Tensors of shape (rows, width), those of one request after those of another: one for each layer."""
        first = tensors[0]
        dtype = str(first.dtype).removeprefix("torch.")
        header = {"requests": requests, "dtype": dtype, "width": first.shape[-1], "located": located or {}}
        if first.device.type == "cpu":
            self._send(header, [_bytes(tensor) for tensor in tensors])
            return
        pages = [self._pages.filled(_bytes(tensor)) for tensor in tensors]
        arrived = torch.cuda.Event(blocking=True)
        arrived.record()
        self._start()
        self._coming.put(Coming(header, pages, arrived))

    def _start(self) -> None:
        """From here on, the socket is the thread's."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_all, name="omni-states", daemon=True)
            self._thread.start()

    def _send_all(self) -> None:
        while True:
            coming = self._coming.get()
            coming.arrived.synchronize()
            self._send(coming.header, [page.content for page in coming.pages])
            self._pages.give_back(coming.pages)

    def _send(self, header: Mapping[str, object], contents: Sequence[torch.Tensor]) -> None:
        self._socket.send_multipart([json.dumps(header).encode(), *(content.numpy() for content in contents)])


@dataclass(frozen=True)
class Page:
    """`content` is the part of `memory` that a copy fills."""

    memory: torch.Tensor
    content: torch.Tensor


@dataclass(frozen=True)
class Coming:
    """A step's message, whose pages are full once the event has happened."""

    header: Mapping[str, object]
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
