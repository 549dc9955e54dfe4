"""Which replica serves a stage of a request. Pure: it looks at replicas and answers with one of them, or none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, TypeVar

from omni_runtime.orchestrator.graph import Plan, PlannedStage

FAR = 0.1
"""A replica that must fetch its inputs from another host is taken if it is done sooner by more than this share."""
COLD = 0.5
"""The same for one that is not the home of the request's affinity key, which has cached what such requests share."""


@dataclass(frozen=True)
class ReplicaInfo:
    """What a worker said of itself when it was asked. `inputs` and `outputs` map each edge to its contract hash."""

    address: str
    name: str
    boot_id: str
    stage: str
    revision: str
    max_in_flight: int
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    locality: str = ""
    """Equal for workers that share memory."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Where a request would like to run, as long as it need not wait for it.

    `localities` are those of the workers that hold its inputs; requests of one `affinity` key share a prefix.
    """

    localities: frozenset[str] = frozenset()
    affinity: str = ""


NO_WISH = Wish()


class Choice(Protocol):
    """A replica as the choice sees it."""

    @property
    def address(self) -> str: ...

    @property
    def locality(self) -> str: ...

    @property
    def work_left_s(self) -> float:
        """Predicted, of all requests that run or wait there, on a replica of usual speed."""
        ...

    @property
    def max_in_flight(self) -> int: ...

    @property
    def slowness(self) -> float:
        """How long requests take there by recent experience, as a multiple of what was predicted."""
        ...

    @property
    def last_chosen(self) -> int:
        """Grows with each choice, so that ties go round."""
        ...


Candidate = TypeVar("Candidate", bound=Choice)


class Choose(Protocol):
    def __call__(self, candidates: Sequence[Candidate], work_s: float, wish: Wish = NO_WISH) -> Candidate | None:
        """One of the candidates for work that takes about so long on a replica of usual speed."""
        ...


def choose(candidates: Sequence[Candidate], work_s: float, wish: Wish = NO_WISH) -> Candidate | None:
    """The replica that is predicted to be done first with what it has and this work; among equals, the longest idle."""
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    if wish is NO_WISH:
        return min(candidates, key=lambda candidate: (_done_in_s(candidate, work_s), candidate.last_chosen))
    home = _home(candidates, wish.affinity)

    def cost(candidate: Candidate) -> tuple[float, int]:
        is_far = bool(wish.localities) and candidate.locality not in wish.localities
        is_cold = bool(home) and candidate.address != home
        return _done_in_s(candidate, work_s) * (1 + FAR * is_far + COLD * is_cold), candidate.last_chosen

    return min(candidates, key=cost)


def _home(candidates: Iterable[Choice], affinity: str) -> str:
    """The address at which requests of the key meet; when it goes, only its own keys find another (rendezvous hashing).

    D. Thaler, C. Ravishankar: Using Name-Based Mappings to Increase Hit Rates (1998).
    """
    if not affinity:
        return ""
    return max((blake2b(f"{affinity} {one.address}".encode()).digest(), one.address) for one in candidates)[1]


def preferred(candidates: Iterable[Candidate], avoid: frozenset[str]) -> list[Candidate]:
    """The candidates without the addresses to avoid, unless nothing else is there."""
    everyone = list(candidates)
    if not avoid:
        return everyone
    return [candidate for candidate in everyone if candidate.address not in avoid] or everyone


def can_read(replica: ReplicaInfo, contracts: Mapping[str, str]) -> bool:
    """True if the replica agrees with the producers on each edge in `contracts`."""
    return contracts.items() <= replica.inputs.items()


def viable(plan: Plan, replicas: Mapping[str, Sequence[ReplicaInfo]]) -> frozenset[str]:
    """Boot ids of the replicas whose work some chain of replicas with equal contracts can carry to the plan's end."""
    found: set[str] = set()
    for stage in reversed(plan.stages):
        found.update(
            replica.boot_id for replica in replicas.get(stage.name, ()) if _leads_on(replica, stage, replicas, found)
        )
    return frozenset(found)


def _leads_on(
    replica: ReplicaInfo, stage: PlannedStage, replicas: Mapping[str, Sequence[ReplicaInfo]], found: set[str]
) -> bool:
    return all(
        any(
            consumer.boot_id in found and can_read(consumer, {edge.name: replica.outputs.get(edge.name, "")})
            for consumer in replicas.get(edge.target, ())
        )
        for edge in stage.outputs
    )


def _done_in_s(candidate: Choice, work_s: float) -> float:
    return (candidate.work_left_s + work_s) * candidate.slowness / candidate.max_in_flight
