"""A thinker as a part of a family: vLLM reads it from the whole checkpoint, and what it hands on stays as it is."""

from omni_contract.wire.payload import Payload


class ThinkerPart:
    stop_token_ids: tuple[int, ...] = ()

    def select(self, item: Payload) -> Payload:
        return item
