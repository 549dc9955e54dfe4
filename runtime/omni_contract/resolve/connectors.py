"""Which connectors a model's edges use, with their settings; and why some cannot be used where the stages run."""

from collections.abc import Iterable, Mapping

from omni_contract.api.problems import Path, Problem
from omni_contract.api.v1alpha1 import ConnectorSpec, EdgeSpec, OmniModelSpec, built_in_connector

PICKED_BY_AUTO = ("shm",)
"""Connectors with settings that `auto` uses where stages share memory."""


def connectors_with_settings(
    spec: OmniModelSpec, edges: Iterable[EdgeSpec], stages_share_memory: bool
) -> Mapping[str, ConnectorSpec]:
    """By name: those that edges choose, and those that `auto` may pick here."""
    own = {connector.name: connector for connector in spec.connectors}
    chosen = {edge.connector for edge in edges}
    if "auto" in chosen and stages_share_memory:
        chosen.update(PICKED_BY_AUTO)
    found = {name: own.get(name) or built_in_connector(name) for name in sorted(chosen)}
    return {name: connector for name, connector in found.items() if connector is not None}


def memory_problems(spec: OmniModelSpec, edges: Iterable[EdgeSpec]) -> list[Problem]:
    """Edges over shared memory between stages that share none."""
    shared = {"shm", *(connector.name for connector in spec.connectors if connector.shm)}
    own: dict[str, Path] = {edge.name: ("spec", "edges", index, "connector") for index, edge in enumerate(spec.edges)}
    return [
        Problem(
            own.get(edge.name, ("spec", "edges")),
            f'edge "{edge.name}" uses connector "{edge.connector}", which is shared memory, but every stage runs in '
            "pods of its own; use auto or grpc",
        )
        for edge in edges
        if edge.connector in shared
    ]
