"""The stage file: what one stage worker is told at start, as JSON (a ConfigMap in a cluster, a temporary file locally).

It holds what makes a worker restart when it changes. Sampling defaults are in the stage table instead.
"""

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from omni_contract.accelerators import ConfigModel, Vendor
from omni_contract.api.v1alpha1 import ConnectorSpec, EngineBlock, OutputSpec, StreamingSpec


class EdgeEnd(ConfigModel):
    """One end of an edge as its stage sees it; `peer` is the stage at the other end."""

    edge: str
    peer: str
    connector: str
    transform: str | None = None
    retain: Literal["consumed", "terminal"] = "consumed"
    contract_hash: str
    streaming: StreamingSpec | None = Field(None, description="How the producer cuts its items into chunks.")

    @model_serializer(mode="wrap")
    def _without_absent_streaming(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As before there was any: an operator that is new must not restart stages that use none."""
        document: dict[str, Any] = serialize(self)
        if self.streaming is None:
            del document["streaming"]
        return document


class StageFile(ConfigModel):
    format: Literal[1] = 1
    model: str
    stage: str
    revision: str
    family: str | None
    model_path: str
    load_format: Literal["auto", "dummy"] = "auto"
    vendor: Vendor = Field(Vendor.CPU, description="Whose device the stage runs on; the engine takes no other.")
    engine: EngineBlock
    inputs: tuple[EdgeEnd, ...] = ()
    outputs: tuple[EdgeEnd, ...] = ()
    connectors: tuple[ConnectorSpec, ...] = Field((), description="Settings of the connectors that its edges use.")
    output: OutputSpec | None = None
    max_in_flight: int
    max_batch_size: int
    batch_timeout_s: float
    drain_timeout_s: int
    startup_timeout_s: int
    memory_fraction: float | None = Field(None, description="Share of each device's memory; none: all of it.")

    @model_serializer(mode="wrap")
    def _without_what_is_new(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As before there were any: an operator that is new must not restart stages that use none."""
        document: dict[str, Any] = serialize(self)
        if not self.connectors:
            del document["connectors"]
        if self.memory_fraction is None:
            for name in ("memory_fraction", "memoryFraction"):  # by whichever name it is asked for
                document.pop(name, None)
        return document
