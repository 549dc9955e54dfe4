"""Between torch tensors and the arrays that travel. Copies only where the device or the layout forces it."""

import warnings
from collections.abc import Mapping

import torch

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload

# Received buffers are read-only views; nothing in the engine writes to its inputs.
warnings.filterwarnings("ignore", message="The given buffer is not writable", category=UserWarning)


def to_array(tensor: torch.Tensor) -> Array:
    flat = tensor.detach().to("cpu").contiguous().reshape(-1)
    data = memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else memoryview(b"")
    return Array(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), data)


def to_tensor(array: Array, device: torch.device) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, array.dtype)
    if not array.size_bytes:
        return torch.empty(array.shape, dtype=dtype, device=device)
    return torch.frombuffer(array.data, dtype=dtype).reshape(array.shape).to(device)


def to_payload(tensors: Mapping[str, torch.Tensor]) -> Payload:
    return {name: to_array(tensor) for name, tensor in tensors.items()}


def to_tensors(payload: Payload, device: torch.device) -> dict[str, torch.Tensor]:
    tensors = {}
    for name, value in payload.items():
        if not isinstance(value, Array):
            raise OmniError(ErrorCode.STAGE_FAILED, f'payload field "{name}" is a {type(value).__name__}, not an array')
        tensors[name] = to_tensor(value, device)
    return tensors
