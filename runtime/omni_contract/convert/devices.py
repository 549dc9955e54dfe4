"""Device numbers of one old host become counts, or groups of stages that share a pod and its devices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pydantic import JsonValue

from omni_contract.convert.old_stages import OldStage
from omni_contract.convert.sieve import Sieve, integer

RANKS = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


@dataclass(frozen=True)
class Placement:
    """Which stages share a pod, since they share devices."""

    groups: tuple[tuple[OldStage, ...], ...]

    def group_of(self, stage: OldStage) -> tuple[OldStage, ...]:
        return next((group for group in self.groups if stage in group), ())

    def share_pod(self, one: OldStage, other: OldStage) -> bool:
        return other in self.group_of(one)

    def accelerator(self, stage: OldStage, pool: str | None) -> dict[str, JsonValue]:
        """In a group, device numbers count from 0 in the pod; other stages have all of their devices to themselves."""
        found: dict[str, JsonValue] = {} if pool is None else {"pool": pool}
        if group := self.group_of(stage):
            numbers = sorted({number for member in group for number in member.devices})
            found["devices"] = [numbers.index(number) for number in stage.devices]
        elif stage.devices:
            found["count"] = len(stage.devices)
        fraction = stage.engine.get("gpu_memory_utilization")
        return found if fraction is None else {**found, "memoryFraction": fraction}


def placement(stages: Sequence[OldStage], sieve: Sieve) -> Placement:
    """Says, too, what asks for more than a device has, and which stage has more or fewer devices than ranks."""
    for stage in stages:
        _check_ranks(stage, sieve)
    for number in sorted({number for stage in stages for number in stage.devices}):
        _check_memory(number, [stage for stage in stages if number in stage.devices], sieve)
    return Placement(tuple(group for group in _groups(stages) if len(group) > 1))


def _groups(stages: Iterable[OldStage]) -> list[tuple[OldStage, ...]]:
    """Stages that are joined by devices in common."""
    groups = list[tuple[OldStage, ...]]()
    for stage in stages:
        joined = [group for group in groups if any(set(stage.devices) & set(member.devices) for member in group)]
        groups = [group for group in groups if group not in joined]
        groups.append((*(member for group in joined for member in group), stage))
    return [tuple(sorted(group, key=lambda member: member.id)) for group in groups]


def _check_ranks(stage: OldStage, sieve: Sieve) -> None:
    if len(set(stage.devices)) < len(stage.devices):
        sieve.wrong((*stage.path, "runtime", "devices"), "a device stands here twice; keep one")
    ranks = 1
    for name in RANKS:
        ranks *= integer(stage.engine, name) or 1
    if stage.kind == "generation" and max(ranks, len(stage.devices)) > 1:
        told = "a codec runs on one device; name one, without parallel sizes, and take more replicas of the result"
        sieve.wrong((*stage.path, "runtime", "devices"), told)
    elif stage.devices and ranks != len(stage.devices):
        told = f"the stage has {len(stage.devices)} devices, but its parallel sizes ({', '.join(RANKS)}) make {ranks}"
        sieve.wrong((*stage.path, "runtime", "devices"), f"{told}; make them equal")


def _check_memory(number: int, users: Sequence[OldStage], sieve: Sieve) -> None:
    if len(users) < 2:
        return
    names = " and ".join(f'"{stage.name}"' for stage in users)
    fractions: Mapping[str, JsonValue] = {
        stage.name: fraction for stage in users if (fraction := stage.engine.get("gpu_memory_utilization")) is not None
    }
    for stage in users:
        if stage.name not in fractions:
            told = f"stages {names} share device {number}, and this one does not say how much of it it takes"
            sieve.wrong((*stage.path, "engine_args"), f"{told}; set gpu_memory_utilization")
    total = sum(Decimal(str(fraction)) for fraction in fractions.values())
    if total > 1:
        told = f"stages {names} share device {number} and take {total} of its memory together"
        path = (*users[-1].path, "engine_args", "gpu_memory_utilization")
        sieve.wrong(path, f"{told}; lower one, so that they sum to 1 at most, or give a stage another device")
