"""Rows of requests on their way out of vLLM's process, from StateSender and FrameMaker: one message for a step."""

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
import zmq

OfRequest: TypeAlias = tuple[str, int, int]
"""A request's key, the first position that its rows are of, and how many they are."""


class StateSocket:
    def __init__(self, address: str) -> None:
        self._socket: Any = zmq.Context.instance().socket(zmq.PUSH)
        self._socket.connect(address)

    def send(self, requests: Sequence[OfRequest], tensors: Sequence[torch.Tensor]) -> None:
        """Tensors of shape (rows, width), those of one request after those of another: one for each layer."""
        header = {
            "requests": requests,
            "dtype": str(tensors[0].dtype).removeprefix("torch."),
            "width": tensors[0].shape[-1],
        }
        frames = [tensor.detach().cpu().contiguous().view(torch.uint8).numpy() for tensor in tensors]
        self._socket.send_multipart([json.dumps(header).encode(), *frames])
