"""Messages for a worker travel together."""

from omni_runtime.orchestrator.outbox import Outbox


def put(outbox: Outbox, number: int, size_bytes: int = 0) -> None:
    outbox.message(str(number), 1).start.parameters = bytes(size_bytes)
    outbox.grew(size_bytes)


async def test_the_first_batch_says_who_we_are_and_the_next_holds_all_that_waits() -> None:
    outbox = Outbox("frontend-1", 10, 1 << 20)
    for number in range(3):
        put(outbox, number)
    batches = outbox.batches()
    assert (await anext(batches)).frontend_id == "frontend-1"
    assert [one.request_id for one in (await anext(batches)).messages] == ["0", "1", "2"]


async def test_a_batch_ends_once_it_is_large_enough_and_the_rest_follows_in_order() -> None:
    outbox = Outbox("f", 10, 2000)
    for number in range(5):
        put(outbox, number, size_bytes=600)
    sizes = [[one.request_id for one in outbox.take().messages] for _ in range(3)]
    assert sizes == [["0", "1"], ["2", "3"], ["4"]]


async def test_it_is_full_until_something_is_taken() -> None:
    outbox = Outbox("f", 2, 1000)
    put(outbox, 1)
    assert not outbox.is_full
    put(outbox, 2)
    assert outbox.is_full
    outbox.take()
    assert not outbox.is_full
