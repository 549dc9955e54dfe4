"""Messages to one frontend: batched, bounded, none lost."""

import asyncio

from omni_contract.wire.stage_pb2 import Load
from omni_runtime.transport.pipe import MESSAGE_LIMIT_BYTES
from omni_runtime.worker.outbox import BACKLOG_MESSAGES, Outbox


def outbox() -> Outbox:
    return Outbox(lambda: Load(running=3))


def fill(box: Outbox, number: int, size_bytes: int = 0) -> None:
    box.message(f"r-{number}", 1, size_bytes).outputs.add(inline=bytes(size_bytes))


async def everything(box: Outbox) -> list[list[str]]:
    box.close()
    batches = []
    while (batch := await asyncio.wait_for(box.next_batch(), 5)) is not None:
        assert batch.ByteSize() < MESSAGE_LIMIT_BYTES
        batches.append([m.request_id for m in batch.messages])
    return batches


async def test_the_first_batch_tells_the_load_even_if_there_is_nothing_to_say():
    batch = await asyncio.wait_for(outbox().next_batch(), 5)
    assert batch is not None and batch.load.running == 3 and not batch.messages


async def test_what_was_added_since_the_last_batch_goes_in_one():
    box = outbox()
    for number in range(10):
        fill(box, number)
    assert await everything(box) == [[f"r-{number}" for number in range(10)]]


async def test_what_came_of_one_attempt_since_the_last_batch_goes_in_one_message():
    box = outbox()
    box.message("r-1", 1).accepted = True
    box.message("r-1", 2).accepted = True
    fill(box, 1)
    first = await box.next_batch()
    fill(box, 1)
    second = await box.next_batch()
    assert first is not None and second is not None
    assert [(m.attempt, m.accepted, len(m.outputs)) for m in first.messages] == [(1, True, 1), (2, True, 0)]
    assert [(m.attempt, m.accepted, len(m.outputs)) for m in second.messages] == [(1, False, 1)]


async def test_many_large_messages_are_split_below_what_grpc_takes_and_keep_their_order():
    box = outbox()
    for number in range(300):
        fill(box, number, 65_000)
    batches = await everything(box)
    assert len(batches) > 1
    assert [name for batch in batches for name in batch] == [f"r-{number}" for number in range(300)]


async def test_a_frontend_that_does_not_read_makes_its_writers_wait_until_it_does():
    box = outbox()
    for number in range(BACKLOG_MESSAGES):
        fill(box, number)
    waiting = asyncio.create_task(box.room())
    await asyncio.sleep(0)
    assert not box.has_room and not waiting.done()
    await box.next_batch()
    await asyncio.wait_for(waiting, 5)
    assert box.has_room


async def test_a_waiting_reader_is_woken_by_a_message_by_the_load_and_by_the_end():
    box = outbox()
    await box.next_batch()
    for wake in (lambda: box.message("r-1", 1), box.announce_load, box.close):
        reading = asyncio.create_task(box.next_batch())
        await asyncio.sleep(0)
        assert not reading.done()
        wake()
        batch = await asyncio.wait_for(reading, 5)
    assert batch is None
