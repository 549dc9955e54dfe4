"""Hashes over canonical JSON: of what the two ends of an edge must agree on, and of what makes a stage restart."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from omni_contract.api.v1alpha1 import ArEngine, ConnectorSpec, DiffusionEngine, EdgeSpec, EngineBlock, ModelSource


@dataclass(frozen=True)
class Ends:
    """The engines at the two ends of an edge, and the connector between them if it is one with settings."""

    producer: EngineBlock
    consumer: EngineBlock
    connector: ConnectorSpec | None = None


def canonical_hash(value: Any, length: int) -> str:
    """The same for equal values, whatever the order of their keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def contract_hash(family: str | None, model: ModelSource, edge: EdgeSpec, ends: Ends) -> str:
    """What producer and consumer must agree on; replicas, devices and sampling are not part of it.

    Nor is a connector that every process has: its handles say how they are read. A connector with settings is, since
    a worker that was started without it, or with others, could not read what the other end writes.
    """
    agreed = {
        "family": family,
        "source": model.source,
        "revision": model.revision,
        "loadFormat": model.load_format,
        "transform": edge.transform,
        "producer": _agreed(ends.producer),
        "consumer": _agreed(ends.consumer),
    }
    if ends.connector is not None:
        agreed["connector"] = ends.connector.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return canonical_hash(agreed, 16)


def _agreed(engine: EngineBlock) -> dict[str, Any]:
    """The fields of an engine that shape what it sends and expects."""
    if isinstance(engine, DiffusionEngine):
        return {"kind": engine.kind, "phases": engine.phases, "dtype": engine.dtype}
    if isinstance(engine, ArEngine):
        return {"kind": engine.kind, "part": engine.part, "dtype": engine.dtype, "hiddenLayers": engine.hidden_layers}
    return {"kind": engine.kind}
