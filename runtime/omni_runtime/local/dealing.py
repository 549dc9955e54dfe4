"""Which of this machine's devices each process gets: in turn, and for stages of one pod as they would share them."""

from collections.abc import Iterator
from itertools import cycle, islice

from omni_contract.resolve.resolved import ResolvedModel
from omni_runtime.local.device_memory import Given, check_device_memory
from omni_runtime.local.devices import Machine


def deal(model: ResolvedModel, machine: Machine) -> list[Given]:
    """A machine with too few devices has them shared. Raises InputError if stages then ask for more than there is."""
    given = list(_dealt_out(model, machine))
    check_device_memory(given)
    return given


def _dealt_out(model: ResolvedModel, machine: Machine) -> Iterator[Given]:
    piles = {vendor: cycle(names) for vendor, names in machine.devices.items() if names}
    pods: dict[tuple[str, int], tuple[str, ...]] = {}
    for stage in model.stages:
        group, pile = model.group_of(stage.name), piles.get(stage.device.vendor, iter(()))
        for replica in range(stage.replicas):
            if group is None:
                yield Given(stage, replica, tuple(islice(pile, stage.device.count)))
                continue
            pod = (group.stages[0], replica)
            if pod not in pods:
                pods[pod] = tuple(islice(pile, group.device_count))
            yield Given(stage, replica, tuple(pods[pod][number] for number in group.devices[stage.name]))
