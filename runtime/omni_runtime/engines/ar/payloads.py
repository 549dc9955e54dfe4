"""What came to a stage that makes text, as one payload."""

from collections.abc import Mapping

from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Payload


def payload_of(inputs: Mapping[str, Payload]) -> Payload:
    """The client's request, else what another stage made: its tokens are the prompt, unless it gives one itself."""
    if FINAL in inputs:
        return inputs[FINAL]
    payload = next(iter(inputs.values()))
    items = payload.get("items")
    if not isinstance(items, list):
        return payload
    return {"prompt_token_ids": [token_id for item in items for token_id in item.get("token_ids", ())]}
