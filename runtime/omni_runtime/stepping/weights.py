"""Where a stage's weights are: on its device, in host memory, or nowhere. Everything happens on the step thread."""

import ctypes
import gc
from collections.abc import Iterable, Iterator

import torch

HOST = torch.device("cpu")


def size_bytes(modules: Iterable[torch.nn.Module]) -> int:
    return sum(tensor.nbytes for tensor in _tensors(modules))


def move(modules: Iterable[torch.nn.Module], device: torch.device) -> None:
    for module in modules:
        module.to(device)


def drop(modules: Iterable[torch.nn.Module]) -> None:
    """Frees the memory at once, whoever still refers to the modules; they cannot be used any more."""
    for tensor in _tensors(modules):
        tensor.data = tensor.new_empty(0)


def give_back(device: torch.device) -> None:
    """What is free leaves the process: garbage first, then the reserves of torch and of the C library."""
    gc.collect()
    if device != HOST:
        getattr(torch, device.type).empty_cache()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _tensors(modules: Iterable[torch.nn.Module]) -> Iterator[torch.Tensor]:
    for module in modules:
        yield from module.parameters()
        yield from module.buffers()
