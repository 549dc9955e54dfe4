from omni_runtime.orchestrator import SessionRequest
from omni_runtime.orchestrator.request import SharedPayload


def test_what_requests_have_in_common_is_encoded_once() -> None:
    payload = SharedPayload({"prompt": "a red fox"})
    first, second = (SessionRequest(name, payload, {"seed": seed}) for name, seed in (("a", 1), ("b", 2)))
    assert first.encoded_payload is second.encoded_payload
    assert first.encoded_payload == SessionRequest("c", {"prompt": "a red fox"}).encoded_payload
