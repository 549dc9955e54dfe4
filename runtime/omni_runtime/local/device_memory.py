"""Which stages share a device under `omni serve`, and whether it has the memory that they ask for together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from omni_contract.accelerators import Vendor
from omni_contract.api.v1alpha1 import ArEngine
from omni_contract.resolve import ResolvedStage
from omni_runtime.local.errors import InputError

ROUNDING = 1e-9
"""So that 0.7 + 0.2 + 0.1 is all of a device and not more."""


@dataclass(frozen=True)
class Given:
    """A replica of a stage, with the devices that it may use."""

    stage: ResolvedStage
    replica: int
    devices: Sequence[str]

    @property
    def share(self) -> float:
        """Of each device's memory; 0 for stages that say nothing and whose engines take what they need."""
        engine, fraction = self.stage.engine, self.stage.memory_fraction
        return min(engine.memory_utilization, fraction or 1) if isinstance(engine, ArEngine) else fraction or 0


def check_device_memory(given: Iterable[Given]) -> None:
    """Raises InputError for a device whose stages ask for more than all of its memory: the last would not start."""
    for (vendor, device), users in _users(given).items():
        total = sum(user.share for user in users)
        if total > 1 + ROUNDING:
            shares = ", ".join(f'"{user.stage.name}" {user.share:g}' for user in users)
            raise InputError(
                f"{vendor} device {device} is shared by stages that ask for {total:g} of its memory: {shares}; lower "
                "their memoryUtilization or accelerator.memoryFraction to 1 in all, start fewer replicas, or show more "
                "devices"
            )


def _users(given: Iterable[Given]) -> Mapping[tuple[Vendor, str], list[Given]]:
    users: dict[tuple[Vendor, str], list[Given]] = {}
    for one in given:
        for device in one.devices if one.share else ():
            users.setdefault((one.stage.device.vendor, device), []).append(one)
    return users
