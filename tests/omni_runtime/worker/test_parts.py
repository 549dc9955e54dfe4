"""Parts of a large input wait for their start alone, and no more of them than a worker takes."""

import pytest

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.worker.parts import InputParts


def test_a_start_takes_its_own_parts_in_order_and_once() -> None:
    parts = InputParts()
    parts.add("r1", 1, b"one")
    parts.add("r1", 1, b"two")
    assert parts.take("r2", 1) == ()
    assert parts.take("r1", 1) == [b"one", b"two"]
    assert parts.take("r1", 1) == ()


def test_parts_whose_start_never_came_go_when_others_come() -> None:
    parts = InputParts()
    parts.add("r1", 1, b"lost")
    parts.add("r1", 2, b"again")
    assert parts.take("r1", 1) == ()
    assert parts.take("r1", 2) == [b"again"]


def test_more_than_a_worker_takes_is_not_kept_and_refused_at_the_start() -> None:
    parts = InputParts(largest_bytes=10)
    for _ in range(4):
        parts.add("r1", 1, bytes(4))
    with pytest.raises(OmniError, match="more than 10 bytes") as refused:
        parts.take("r1", 1)
    assert refused.value.code is ErrorCode.PAYLOAD_TOO_LARGE
    parts.add("r2", 1, bytes(10))
    assert parts.take("r2", 1) == [bytes(10)]
