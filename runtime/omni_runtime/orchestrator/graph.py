"""Which stages a request needs, and how they feed each other. Pure: a stage table and modalities in, a plan out."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.names import FINAL, edge_name
from omni_contract.wire.payload import Value
from omni_contract.wire.stage_table import StageTable, TableEdge, TableStage


@dataclass(frozen=True)
class PlannedEdge:
    """An edge that the plan uses."""

    name: str
    source: str
    target: str
    outlives_consumer: bool
    """The payload is held until the request ends, so that a retried consumer can read it again."""


@dataclass(frozen=True, eq=False)
class PlannedStage:
    """A stage that the plan runs. A stage without inputs reads the client's request."""

    name: str
    inputs: tuple[PlannedEdge, ...]
    outputs: tuple[PlannedEdge, ...]
    modality: str | None
    sampling: Mapping[str, Value]

    @cached_property
    def input_names(self) -> frozenset[str]:
        return frozenset(edge.name for edge in self.inputs)

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """What the stage is asked to produce for, "" being the client."""
        final = () if self.modality is None else (FINAL,)
        return (*(edge.name for edge in self.outputs), *final)


@dataclass(frozen=True, eq=False)
class Plan:
    """The stages of one kind of request, each after the stages that feed it."""

    stages: tuple[PlannedStage, ...]

    @cached_property
    def by_name(self) -> Mapping[str, PlannedStage]:
        return {stage.name: stage for stage in self.stages}

    @cached_property
    def consumers(self) -> Mapping[str, str]:
        """The stage at the end of each edge."""
        return {edge.name: edge.target for edge in self.edges}

    def upstream(self, stage: str) -> frozenset[str]:
        """The stage and all that feed it."""
        found, new = frozenset[str](), frozenset({stage})
        while new:
            found |= new
            new = frozenset(edge.source for edge in self.edges if edge.target in new) - found
        return found

    @cached_property
    def edges(self) -> tuple[PlannedEdge, ...]:
        return tuple(edge for stage in self.stages for edge in stage.inputs)


def output_modalities(table: StageTable) -> tuple[str, ...]:
    """What the model can answer with, in stage order."""
    return tuple(dict.fromkeys(stage.output.modality for stage in table.stages if stage.output and stage.output.final))


def plan(table: StageTable, modalities: tuple[str, ...] = ()) -> Plan:
    """The stages that the wanted modalities need; stages that only feed others' outputs are left out."""
    wanted = frozenset(modalities or output_modalities(table))
    _check_modalities(table, wanted)
    needed = _ancestors(table, {stage.name for stage in table.stages if _answers(stage, wanted)})
    edges = [edge for edge in table.edges if edge.source in needed and edge.target in needed]
    planned = {name: _planned(table, name, edges, wanted) for name in needed}
    return Plan(tuple(planned[name] for name in _ordered(table, needed, edges)))


def restart_set(stages: Plan, stage: str, readable: frozenset[str], active: frozenset[str]) -> frozenset[str]:
    """The stages to run again so that `stage` can.

    These are the stage itself, each producer whose payload can no longer be read, and each stage at work on what one of
    them produced. `readable` holds the edges whose payloads are still there, `active` the stages that have started and
    not finished.
    """
    again = frozenset({stage})
    while True:
        producers = {edge.source for edge in stages.edges if edge.target in again and edge.name not in readable}
        consumers = {edge.target for edge in stages.edges if edge.source in again and edge.target in active}
        if again.issuperset(producers | consumers):
            return again
        again = again | producers | consumers


def _answers(stage: TableStage, wanted: frozenset[str]) -> bool:
    return stage.output is not None and stage.output.final and stage.output.modality in wanted


def _check_modalities(table: StageTable, wanted: frozenset[str]) -> None:
    offered = output_modalities(table)
    for modality in sorted(wanted.difference(offered)):
        text = f'model "{table.model}" has no {modality} output; it answers with {", ".join(offered) or "nothing"}'
        raise OmniError(ErrorCode.INVALID_REQUEST, text, "modalities")
    if not wanted:
        raise OmniError(ErrorCode.INVALID_REQUEST, f'model "{table.model}" has no final output')


def _ancestors(table: StageTable, names: set[str]) -> frozenset[str]:
    needed = frozenset(names)
    while True:
        grown = needed.union(edge.source for edge in table.edges if edge.target in needed)
        if grown == needed:
            return needed
        needed = grown


def _planned(table: StageTable, name: str, edges: list[TableEdge], wanted: frozenset[str]) -> PlannedStage:
    stage = next(stage for stage in table.stages if stage.name == name)
    return PlannedStage(
        name=name,
        inputs=tuple(_edge(edge) for edge in edges if edge.target == name),
        outputs=tuple(_edge(edge) for edge in edges if edge.source == name),
        modality=stage.output.modality if stage.output and _answers(stage, wanted) else None,
        sampling=_sampling(table, stage),
    )


def _sampling(table: StageTable, stage: TableStage) -> Mapping[str, Value]:
    """Every stage gets the defaults of all; where two stages disagree, each sees its own."""
    merged: dict[str, Value] = {}
    for other in table.stages:
        merged.update(other.sampling)
    return {**merged, **stage.sampling}


def _edge(edge: TableEdge) -> PlannedEdge:
    return PlannedEdge(edge_name(edge.source, edge.target), edge.source, edge.target, edge.retain == "terminal")


def _ordered(table: StageTable, needed: frozenset[str], edges: list[TableEdge]) -> list[str]:
    order: list[str] = []
    left = [stage.name for stage in table.stages if stage.name in needed]
    while left:
        fed = [name for name in left if all(edge.source in order for edge in edges if edge.target == name)]
        if not fed:
            raise OmniError(ErrorCode.INTERNAL, f'model "{table.model}": stages {", ".join(left)} feed each other')
        order += fed
        left = [name for name in left if name not in fed]
    return order
