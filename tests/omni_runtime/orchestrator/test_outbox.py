"""Messages for a worker travel together."""

import pytest

from omni_contract.wire.stage_pb2 import FrontendMessage, Start
from omni_runtime.orchestrator.outbox import Outbox, OutboxFullError


def message(number: int, size: int = 0) -> FrontendMessage:
    return FrontendMessage(request_id=str(number), start=Start(parameters=bytes(size)))


async def test_the_first_batch_says_who_we_are_and_the_next_holds_all_that_waits() -> None:
    outbox = Outbox("frontend-1", 10, 1000)
    for number in range(3):
        outbox.put(message(number))
    batches = outbox.batches()
    assert (await anext(batches)).frontend_id == "frontend-1"
    assert [one.request_id for one in (await anext(batches)).messages] == ["0", "1", "2"]


async def test_a_batch_ends_once_it_is_large_enough_and_the_rest_follows_in_order() -> None:
    outbox = Outbox("f", 10, 1000)
    for number in range(5):
        outbox.put(message(number, size=600))
    sizes = [[one.request_id for one in outbox.take().messages] for _ in range(3)]
    assert sizes == [["0", "1"], ["2", "3"], ["4"]]


async def test_it_is_bounded() -> None:
    outbox = Outbox("f", 2, 1000)
    outbox.put(message(1))
    outbox.put(message(2))
    with pytest.raises(OutboxFullError, match="2 messages wait"):
        outbox.put(message(3))
