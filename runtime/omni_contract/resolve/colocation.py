"""Stages in one pod: which devices each gets, and why some cannot be together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

from omni_contract.accelerators import AcceleratorCatalog
from omni_contract.api.nearest import did_you_mean
from omni_contract.api.problems import Path, Problem
from omni_contract.api.v1alpha1 import OmniModelSpec, StageSpec
from omni_contract.resolve.devices import device, visible_devices_variable
from omni_contract.resolve.group_ports import ports_of_group
from omni_contract.resolve.resolved import ResolvedGroup

Placed: TypeAlias = tuple[Path, StageSpec]
"""A stage with its place in the file."""


def groups_of(
    spec: OmniModelSpec, stages: Iterable[StageSpec], catalog: AcceleratorCatalog
) -> tuple[ResolvedGroup, ...]:
    """Once nothing is wrong with them."""
    by_name = {stage.name: stage for stage in stages}
    groups = []
    for names in spec.placement.colocate:
        members = [by_name[name] for name in names]
        numbers = _device_numbers(members, catalog)
        groups.append(ResolvedGroup(names, numbers, visible_devices_variable(members[0], catalog)))
    return tuple(groups)


def group_problems(spec: OmniModelSpec, stages: Iterable[Placed]) -> list[Problem]:
    """What is wrong with the groups whatever the cluster."""
    known = {placed[1].name: placed for placed in stages}
    problems = []
    for index, names in enumerate(spec.placement.colocate):
        path: Path = ("spec", "placement", "colocate", index)
        problems += [_unknown(name, path, known) for name in names if name not in known]
        members = [known[name] for name in names if name in known]
        problems += _unequal(members, ("replicas",), lambda stage: stage.replicas)
        problems += _unequal(members, ("autoscaling",), _autoscaling_of)
        problems += _taken_ports(members)
    return problems


def sharing_problems(spec: OmniModelSpec, stages: Sequence[Placed], catalog: AcceleratorCatalog) -> list[Problem]:
    """Why stages whose pools exist cannot share a pod of this cluster, or a device of their pod."""
    known = {placed[1].name: placed for placed in stages}
    problems = list(_without_devices(stages, catalog))
    for names in spec.placement.colocate:
        members = [known[name] for name in names]
        pools = _unequal(members, ("accelerator", "pool"), lambda stage: device(stage, catalog).pool)
        problems += pools or [*_unlimited(members, catalog), *_overfull(members, catalog)]
    return problems


def _autoscaling_of(stage: StageSpec) -> str:
    return "none" if stage.autoscaling is None else stage.autoscaling.model_dump_json(by_alias=True, exclude_none=True)


def shares_pod(spec: OmniModelSpec, source: str, target: str) -> bool:
    return target in (spec.placement.group_of(source) or ())


def _device_numbers(members: Sequence[StageSpec], catalog: AcceleratorCatalog) -> Mapping[str, tuple[int, ...]]:
    """Of each stage: those that it names, else devices of its own behind all that are named."""
    numbers = {stage.name: stage.accelerator.devices or () for stage in members}
    free = 1 + max((number for chosen in numbers.values() for number in chosen), default=-1)
    for stage in members:
        if stage.accelerator.devices is None:
            count = device(stage, catalog).count
            numbers[stage.name] = tuple(range(free, free + count))
            free += count
    return numbers


def _unknown(name: str, path: Path, known: Iterable[str]) -> Problem:
    listed = ", ".join(f'"{one}"' for one in known)
    hint = did_you_mean(name, known)
    return Problem(path, f'stage "{name}" does not exist{hint}; the stages are: {listed}')


def _unequal(members: Sequence[Placed], field: Path, value: Callable[[StageSpec], object]) -> list[Problem]:
    """Fields that must be the same in one pod."""
    if not members:
        return []
    (_, first), *others = members
    name = ".".join(map(str, field))
    return [
        Problem(
            (*path, *field),
            f'stage "{stage.name}" shares a pod with "{first.name}", but its {name} is {value(stage)} and not '
            f"{value(first)}; make them equal, or take one of the two out of placement.colocate",
        )
        for path, stage in others
        if value(stage) != value(first)
    ]


def _taken_ports(members: Sequence[Placed]) -> Iterator[Problem]:
    """The processes of a pod share its ports."""
    taken = dict.fromkeys(ports_of_group(len(members)), "a worker")
    for path, stage in members:
        port = stage.admin_port
        if port in taken:
            message = f'stage "{stage.name}" shares a pod in which {taken[port]} has port {port} already'
            yield Problem((*path, "adminPort"), f"{message}; choose another adminPort")
        elif port is not None:
            taken[port] = f'"{stage.name}"'


def _without_devices(stages: Iterable[Placed], catalog: AcceleratorCatalog) -> Iterator[Problem]:
    for path, stage in stages:
        found = device(stage, catalog)
        if found.vendor.has_devices:
            continue
        for field, value in (
            ("memoryFraction", stage.accelerator.memory_fraction),
            ("devices", stage.accelerator.devices),
        ):
            if value is not None:
                message = (
                    f'stage "{stage.name}": pool "{found.pool}" has no devices, so {field} says nothing; remove it'
                )
                yield Problem((*path, "accelerator", field), message)


def _unlimited(members: Sequence[Placed], catalog: AcceleratorCatalog) -> Iterator[Problem]:
    """Stages of one pod see all of its devices, unless their vendor has a variable that says which."""
    path, first = members[0]
    found = device(first, catalog)
    if found.vendor.has_devices and visible_devices_variable(first, catalog) is None:
        yield Problem(
            (*path, "accelerator", "pool"),
            f'stage "{first.name}" shares a pod, but the profile of pool "{found.pool}" does not say how a process is '
            "limited to its devices; set visibleDevicesVariable there, or take the stage out of placement.colocate",
        )


def _overfull(members: Sequence[Placed], catalog: AcceleratorCatalog) -> list[Problem]:
    """Devices of which the stages of a pod take more than there is."""
    numbers = _device_numbers([stage for _, stage in members], catalog)
    problems = []
    for number in sorted({number for chosen in numbers.values() for number in chosen}):
        users = [placed for placed in members if number in numbers[placed[1].name]]
        if len(users) > 1:
            problems += _of_shared(number, users)
    return list(dict.fromkeys(problems))


def _of_shared(number: int, users: Sequence[Placed]) -> list[Problem]:
    names = " and ".join(f'"{stage.name}"' for _, stage in users)
    silent = [placed for placed in users if placed[1].accelerator.memory_fraction is None]
    if silent:
        return [
            Problem(
                (*path, "accelerator", "memoryFraction"),
                f'stages {names} share device {number}, and "{stage.name}" does not say how much of its memory it '
                "takes; set memoryFraction, so that they sum to 1 at most",
            )
            for path, stage in silent
        ]
    total = sum(Decimal(str(stage.accelerator.memory_fraction)) for _, stage in users)
    if total <= 1:
        return []
    path, _ = users[-1]
    return [
        Problem(
            (*path, "accelerator", "memoryFraction"),
            f"stages {names} share device {number} and take {total} of its memory together; lower memoryFraction, so "
            "that they sum to 1 at most, or give one of them another device",
        )
    ]
