"""Holds a stage's family to what it says that its stages hand to each other, at both ends of every edge.

Equal contract hashes mean that two stages were told the same; this finds an image of another version that does another
thing. Stages of no family, and fake engines, hand on whatever they like.
"""

from collections.abc import Mapping

from omni_contract.api.v1alpha1 import FakeEngine
from omni_contract.presets import PRESETS
from omni_contract.presets.payloads import PayloadSchema
from omni_contract.wire.chunk import chunk_of, is_chunk
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_file import StageFile


class EdgeSchemas:
    def __init__(self, file: StageFile) -> None:
        preset = None if file.family is None or isinstance(file.engine, FakeEngine) else PRESETS.get(file.family)
        made = preset.made_by(file.stage, file.engine) if preset else None
        self._made = _known({end.edge: made for end in file.outputs})
        self._taken = _known(
            {end.edge: preset.taken_from(end.peer, file.engine) if preset else None for end in file.inputs}
        )

    def check_made(self, edge: str, payload: Payload) -> None:
        """Raises OmniError(STAGE_FAILED) if the engine made something else than its family says."""
        _check(self._made.get(edge), edge, payload)

    def check_taken(self, edge: str, payload: Payload) -> None:
        """Raises OmniError(STAGE_FAILED) if the other end hands over something else than this stage's family says."""
        _check(self._taken.get(edge), edge, payload)


def _known(schemas: Mapping[str, PayloadSchema | None]) -> Mapping[str, PayloadSchema]:
    return {edge: schema for edge, schema in schemas.items() if schema is not None}


def _check(schema: PayloadSchema | None, edge: str, payload: Payload) -> None:
    """Items that an edge gathers, as it does not stream, are looked at one by one."""
    if schema is None:
        return
    for item in chunk_of(payload).items if is_chunk(payload) else (payload,):
        if (problem := schema.problem(item)) is not None:
            text = f'the payload of edge "{edge}" {problem}; the two stages may run images of different versions'
            raise OmniError(ErrorCode.STAGE_FAILED, text)
