"""Where a stage's weights are: on its device, in host memory, or nowhere. Everything happens on the step thread."""

import ctypes
import gc
from collections.abc import Iterator

import torch
from diffusers import ModularPipeline

HOST = torch.device("cpu")


def size_bytes(blocks: ModularPipeline) -> int:
    return sum(tensor.nbytes for tensor in _tensors(blocks))


def move(blocks: ModularPipeline, device: torch.device) -> None:
    for module in _modules(blocks):
        module.to(device)


def drop(blocks: ModularPipeline) -> None:
    """Frees the memory at once, whoever still refers to the modules; they cannot be used any more."""
    for tensor in _tensors(blocks):
        tensor.data = tensor.new_empty(0)


def give_back(device: torch.device) -> None:
    """What is free leaves the process: garbage first, then the reserves of torch and of the C library."""
    gc.collect()
    if device != HOST:
        getattr(torch, device.type).empty_cache()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _modules(blocks: ModularPipeline) -> Iterator[torch.nn.Module]:
    for name in blocks.pretrained_component_names:
        component = getattr(blocks, name)
        if isinstance(component, torch.nn.Module):
            yield component


def _tensors(blocks: ModularPipeline) -> Iterator[torch.Tensor]:
    for module in _modules(blocks):
        yield from module.parameters()
        yield from module.buffers()
