"""Named connector settings: how payloads travel over the edges that name them. Exactly one block is set."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, StringConstraints
from pydantic.alias_generators import to_snake

from omni_contract.api.v1alpha1.base import DNS_LABEL, ApiModel, Quantity
from omni_contract.api.v1alpha1.mooncake import MooncakeStoreConnector, MooncakeTransferEngineConnector
from omni_contract.api.v1alpha1.yuanrong import YuanrongConnector

ConnectorName = Annotated[str, StringConstraints(pattern=DNS_LABEL, min_length=1, max_length=30)]


class ShmConnector(ApiModel):
    """Shared memory: the producer copies a payload in, the consumer reads it in place."""

    kind: ClassVar[Literal["shm"]] = "shm"

    size: Quantity = Field(
        "256Mi",
        description="Memory of each producing replica for its payloads: taken at its start where an edge names the "
        "connector, and as it is needed where only auto uses it.",
    )
    directory: Annotated[str, Field(pattern=r"^/[^\s:]+$", max_length=256)] | None = Field(
        None, description="Folder of a file system in memory, in local mode; left out, a private one in /dev/shm."
    )
    wait_seconds: Annotated[float, Field(ge=0, le=3600)] = Field(
        10.0, description="How long a payload waits for room while the memory is full, before its request fails."
    )
    checksum: bool = Field(False, description="Whether the consumer checks that payloads are undamaged.")


ConnectorBlock: TypeAlias = ShmConnector | MooncakeStoreConnector | MooncakeTransferEngineConnector | YuanrongConnector
ConnectorKind = Literal["auto", "inline", "grpc", "shm", "mooncakeStore", "mooncakeTransferEngine", "yuanrong"]
CONNECTOR_FIELDS: tuple[ConnectorKind, ...] = ("shm", "mooncakeStore", "mooncakeTransferEngine", "yuanrong")
"""Fields of an entry of `connectors` of which exactly one is set."""
PLAIN_CONNECTORS: tuple[ConnectorKind, ...] = ("auto", "inline", "grpc")
"""Connectors without settings; every process has them."""
BUILT_IN_CONNECTORS: tuple[ConnectorKind, ...] = (*PLAIN_CONNECTORS, "shm")
"""What an edge may name without an entry in `connectors`: the plain ones, and kinds that need no setting."""


class ConnectorSpec(ApiModel):
    """Settings of a connector, under the name by which edges choose it."""

    name: ConnectorName = Field(
        description="Short name, unique in the model. An entry that is named like its own kind changes the built-in "
        "connector of that name, which auto uses as well."
    )
    shm: ShmConnector | None = Field(
        None, description="Shared memory between stages on one host. Exactly one block is set."
    )
    mooncake_store: MooncakeStoreConnector | None = Field(
        None, description="Mooncake's store, with its master. Exactly one block is set."
    )
    mooncake_transfer_engine: MooncakeTransferEngineConnector | None = Field(
        None, description="Mooncake's transfer engine, from worker to worker. Exactly one block is set."
    )
    yuanrong: YuanrongConnector | None = Field(
        None, description="openYuanrong's data system. Exactly one block is set."
    )

    @property
    def block(self) -> ConnectorBlock:
        """The block that is set; the rules have checked that there is one."""
        for block in (self.shm, self.mooncake_store, self.mooncake_transfer_engine, self.yuanrong):
            if block is not None:
                return block
        raise AssertionError(f'connector "{self.name}" passed the checks without settings')

    def with_block(self, block: ConnectorBlock) -> "ConnectorSpec":
        """The same connector with other settings of its kind."""
        return self.model_copy(update={to_snake(block.kind): block})


def built_in_connector(name: str) -> ConnectorSpec | None:
    """A built-in connector with its default settings; None for one that has no settings."""
    return None if name in PLAIN_CONNECTORS else ConnectorSpec.model_validate({"name": name, name: {}})
