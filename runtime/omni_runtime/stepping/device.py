"""Which torch device a stage runs on: what its pool's vendor says, or an error; never another one silently."""

from collections.abc import Mapping

import torch

from omni_contract.accelerators import Vendor
from omni_runtime.engines.protocol import UnusableEngineError

DEVICE_TYPES: Mapping[Vendor, str] = {
    Vendor.CPU: "cpu",
    Vendor.NVIDIA: "cuda",
    # PyTorch's ROCm build answers to CUDA's name.
    Vendor.ROCM: "cuda",
    Vendor.ASCEND: "npu",
    Vendor.XPU: "xpu",
}


class DeviceMissingError(UnusableEngineError):
    def __init__(self, vendor: Vendor, device_type: str) -> None:
        super().__init__(
            f'the stage is to run on vendor "{vendor}", but torch {torch.__version__} sees no "{device_type}" device; '
            f"check the pool's resource and image, or choose a cpu pool"
        )


def torch_device(vendor: Vendor, memory_fraction: float | None = None) -> torch.device:
    """With a fraction, this process gets no more than that share of each device's memory."""
    device_type = DEVICE_TYPES[vendor]
    # A CUDA build without a driver still names cuda its accelerator; only is_available tells the truth.
    backend = getattr(torch, device_type, None)
    if backend is None or not backend.is_available():
        raise DeviceMissingError(vendor, device_type)
    if memory_fraction is not None:
        for index in range(backend.device_count()):
            backend.set_per_process_memory_fraction(memory_fraction, index)
    return torch.device(device_type)
