"""Which connectors a model's edges use, with their settings; and why some cannot be used where the stages run."""

from collections.abc import Callable, Iterable, Mapping

from omni_contract.api.problems import Path, Problem
from omni_contract.api.v1alpha1 import ConnectorSpec, EdgeSpec, OmniModelSpec, built_in_connector
from omni_contract.resolve.colocation import shares_pod

PICKED_BY_AUTO = ("shm",)
"""Connectors with settings that `auto` uses where stages share memory."""


def connectors_with_settings(
    spec: OmniModelSpec, edges: Iterable[EdgeSpec], shares_memory: Callable[[EdgeSpec], bool]
) -> Mapping[str, ConnectorSpec]:
    """By name: those that edges choose, and those that `auto` may pick on an edge whose ends share memory."""
    edges = list(edges)
    own = {connector.name: connector for connector in spec.connectors}
    chosen = {edge.connector for edge in edges}
    if any(edge.connector == "auto" and shares_memory(edge) for edge in edges):
        chosen.update(PICKED_BY_AUTO)
    found = {name: own.get(name) or built_in_connector(name) for name in sorted(chosen)}
    return {name: connector for name, connector in found.items() if connector is not None}


def in_pods(connector: ConnectorSpec) -> ConnectorSpec:
    """Without a folder of this machine: the memory of a pod is a volume of its own."""
    if connector.shm is None:
        return connector
    return connector.with_block(connector.shm.model_copy(update={"directory": None}))


def memory_problems(spec: OmniModelSpec, edges: Iterable[EdgeSpec]) -> list[Problem]:
    """Edges over shared memory between stages that share none."""
    shared = {"shm", *(connector.name for connector in spec.connectors if connector.shm)}
    own: dict[str, Path] = {edge.name: ("spec", "edges", index, "connector") for index, edge in enumerate(spec.edges)}
    return [
        Problem(
            own.get(edge.name, ("spec", "edges")),
            f'edge "{edge.name}" uses connector "{edge.connector}", which is shared memory, but the two stages '
            "run in different pods; use auto or grpc, or add them to placement.colocate",
        )
        for edge in edges
        if edge.connector in shared and not shares_pod(spec, edge.from_, edge.to)
    ]
