"""Which devices this machine has, read from the device files that each vendor's driver makes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from omni_contract.accelerators import Vendor


@dataclass(frozen=True)
class DeviceKind:
    """How to find one vendor's devices and how a process is limited to some of them."""

    files: str
    visible_variable: str


DEVICE_KINDS: Mapping[Vendor, DeviceKind] = {
    Vendor.NVIDIA: DeviceKind(r"nvidia\d+", "CUDA_VISIBLE_DEVICES"),
    Vendor.ROCM: DeviceKind(r"dri/renderD\d+", "HIP_VISIBLE_DEVICES"),
    Vendor.ASCEND: DeviceKind(r"davinci\d+", "ASCEND_RT_VISIBLE_DEVICES"),
}
ROCM_DRIVER = "kfd"
"""Render nodes belong to graphics cards of any make; they are ROCm devices only beside this file."""


@dataclass(frozen=True)
class Machine:
    """Device names by vendor, in the order in which a process may use them. The CPU is always there."""

    devices: Mapping[Vendor, tuple[str, ...]]

    @property
    def vendors(self) -> tuple[Vendor, ...]:
        return (*(vendor for vendor, names in self.devices.items() if names), Vendor.CPU)

    @property
    def accelerator(self) -> Vendor | None:
        """The vendor that a pool of any other name means here."""
        return self.vendors[0] if len(self.vendors) > 1 else None


def find_devices(dev: Path, environment: Mapping[str, str]) -> Machine:
    """The devices below `dev` that the environment leaves visible."""
    return Machine({vendor: _visible(vendor, _names(dev, vendor), environment) for vendor in DEVICE_KINDS})


def _names(dev: Path, vendor: Vendor) -> tuple[str, ...]:
    if vendor is Vendor.ROCM and not (dev / ROCM_DRIVER).exists():
        return ()
    folder, _, pattern = DEVICE_KINDS[vendor].files.rpartition("/")
    below = dev / folder
    if not below.is_dir():
        return ()
    count = sum(re.fullmatch(pattern, path.name) is not None for path in below.iterdir())
    return tuple(str(index) for index in range(count))


def _visible(vendor: Vendor, names: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, ...]:
    """A logical device of ours is an entry of the visible list that we were started with."""
    limited = environment.get(DEVICE_KINDS[vendor].visible_variable)
    if limited is None or not names:
        return names
    return tuple(name.strip() for name in limited.split(",") if name.strip())
