"""Where in shared memory a handle's payload lies."""

from typing import Annotated

from pydantic import Field, ValidationError

from omni_contract.accelerators import ConfigModel
from omni_contract.wire.errors import TransferError
from omni_contract.wire.stage_pb2 import Handle


class Locator(ConfigModel):
    """`locality` names those who share the memory; `arena` is a file in a folder that they all know."""

    locality: str
    arena: str
    offset: Annotated[int, Field(ge=0)]

    def to_bytes(self) -> bytes:
        return self.model_dump_json().encode()


def locator_of(handle: Handle) -> Locator:
    """Raises TransferError if the handle, which comes from the network, has none."""
    try:
        return Locator.model_validate_json(handle.locator)
    except ValidationError as error:
        raise TransferError(handle.edge, handle.request_id, "the handle names no place in shared memory") from error
