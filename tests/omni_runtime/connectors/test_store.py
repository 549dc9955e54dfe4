"""What one process holds for others: within its limit, until release or deadline."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_contract.wire.codec import EncodedPayload, encode
from omni_runtime.connectors.budget import PayloadGoneError, StoreFullError
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.connectors.stream import BUFFER_BYTES, BUFFER_CHUNKS, CHUNK_COST_BYTES, ChunkStream

LONG_S = 60.0


def nobody() -> None:
    """A reader who listens to nothing."""


def payload(size_bytes: int = 100) -> EncodedPayload:
    return encode({"data": bytes(size_bytes)})


async def test_a_payload_is_held_until_it_is_dropped():
    store, held = PayloadStore(10_000), payload()
    key = store.hold(held, LONG_S)
    assert store.object(key) is held and (len(store), store.size_bytes) == (1, held.size_bytes)
    store.drop(key)
    store.drop(key)
    assert (len(store), store.size_bytes) == (0, 0)
    with pytest.raises(PayloadGoneError, match="not held here"):
        store.object(key)


async def test_a_payload_is_gone_after_its_deadline():
    store = PayloadStore(10_000)
    store.hold(payload(), 0.01)
    await asyncio.wait_for(store.wait_empty(), 5)
    assert store.size_bytes == 0


async def test_what_does_not_fit_is_refused_and_takes_nothing():
    store = PayloadStore(payload().size_bytes)
    store.hold(payload(), LONG_S)
    with pytest.raises(StoreFullError, match="no room for"):
        store.hold(payload(), LONG_S)
    assert len(store) == 1


async def test_an_object_is_no_stream_and_a_stream_no_object():
    store = PayloadStore(10_000)
    with pytest.raises(PayloadGoneError):
        store.stream(store.hold(payload(), LONG_S))
    with pytest.raises(PayloadGoneError):
        store.object(store.open_stream(LONG_S))


async def test_an_empty_store_is_empty_at_once_and_again_after_it_was_not():
    store = PayloadStore(10_000)
    await asyncio.wait_for(store.wait_empty(), 5)
    key = store.hold(payload(), LONG_S)
    waiting = asyncio.create_task(store.wait_empty())
    await asyncio.sleep(0)
    assert not waiting.done()
    store.drop(key)
    await asyncio.wait_for(waiting, 5)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4_000), st.booleans()), max_size=40))
def test_the_bytes_in_use_are_always_those_of_what_is_held(steps: list[tuple[int, bool]]):
    async def play() -> None:
        store, held = PayloadStore(20_000), dict[str, int]()
        for size_bytes, is_drop in steps:
            if is_drop and held:
                key, _ = held.popitem()
                store.drop(key)
            else:
                try:
                    held[store.hold(payload(size_bytes), LONG_S)] = payload(size_bytes).size_bytes
                except StoreFullError:
                    assert sum(held.values()) + payload(size_bytes).size_bytes > 20_000
            assert (len(store), store.size_bytes) == (len(held), sum(held.values()))
        store.close()
        assert (len(store), store.size_bytes) == (0, 0)

    asyncio.run(play())


async def fill(stream: ChunkStream, chunk: EncodedPayload) -> tuple[int, asyncio.Task[None]]:
    """How many chunks nobody has to read for them to be taken, and who waits with the one after them."""
    taken = 0
    while True:
        appending = asyncio.create_task(stream.append(chunk))
        await asyncio.wait((appending,), timeout=0.01)
        if not appending.done():
            return taken, appending
        await appending
        taken += 1


async def test_a_stream_makes_its_producer_wait_once_so_many_bytes_wait_for_its_reader():
    store, chunk = PayloadStore(2**30), payload(2**20)
    stream = store.stream(store.open_stream(LONG_S))
    taken, blocked = await fill(stream, chunk)
    assert store.size_bytes == taken * chunk.size_bytes
    assert BUFFER_BYTES - 2 * chunk.size_bytes < store.size_bytes <= BUFFER_BYTES
    assert stream.take() == chunk
    await asyncio.wait_for(blocked, 5)


async def test_streams_go_ahead_on_half_of_the_store_and_each_a_little_on_the_other_half():
    chunk = payload()
    store = PayloadStore(100 * chunk.size_bytes)
    (ahead, first), (near, second) = [await fill(store.stream(store.open_stream(LONG_S)), chunk) for _ in range(2)]
    assert (ahead, near) == (50, BUFFER_CHUNKS)
    store.close()
    for blocked in (first, second):
        with pytest.raises(PayloadGoneError):
            await blocked


async def test_chunks_without_bytes_are_bounded_by_their_number():
    store, chunk = PayloadStore(2**30), encode({})
    stream = store.stream(store.open_stream(LONG_S))
    for _ in range(BUFFER_BYTES // (chunk.size_bytes + CHUNK_COST_BYTES)):
        await stream.append(chunk)
    blocked = asyncio.create_task(stream.append(chunk))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not blocked.done()
    blocked.cancel()


async def test_a_chunk_gives_its_bytes_back_as_it_is_taken():
    store = PayloadStore(10**6)
    stream = store.stream(store.open_stream(LONG_S))
    for _ in range(3):
        await stream.append(payload())
    stream.end()
    in_use = [store.size_bytes for _ in iter(stream.take, None)]
    assert in_use == [n * payload().size_bytes for n in (2, 1, 0)]
    assert stream.is_complete
    assert store.size_bytes == 0


async def test_a_chunk_larger_than_the_whole_buffer_still_passes():
    store = PayloadStore(2**30)
    stream = store.stream(store.open_stream(LONG_S))
    await asyncio.wait_for(stream.append(payload(65 * 2**20)), 5)
    taken = stream.take()
    assert taken is not None and taken.size_bytes > 64 * 2**20


async def test_a_stream_that_was_read_cannot_be_read_again():
    store = PayloadStore(10_000)
    stream = store.stream(store.open_stream(LONG_S))
    await stream.append(payload())
    stream.begin(nobody)
    # Nothing has gone to the first reader, so another one misses nothing.
    stream.begin(nobody)
    stream.take()
    with pytest.raises(PayloadGoneError, match="first chunk was delivered and freed"):
        stream.begin(nobody)


async def test_a_reader_is_told_of_all_that_comes():
    store, told = PayloadStore(10**6), list[str]()
    key = store.open_stream(LONG_S)
    stream = store.stream(key)
    stream.begin(lambda: told.append("news"))
    assert told == [] and stream.take() is None
    await stream.append(payload())
    stream.end()
    store.drop(key)
    assert len(told) == 3


async def test_a_dropped_stream_gives_nothing_and_takes_nothing():
    store = PayloadStore(10**6)
    key = store.open_stream(LONG_S)
    stream = store.stream(key)
    store.drop(key)
    with pytest.raises(PayloadGoneError, match="released or its deadline"):
        stream.take()
    with pytest.raises(PayloadGoneError, match="released or its deadline"):
        stream.begin(nobody)
    with pytest.raises(PayloadGoneError):
        await stream.append(payload())
    assert (len(store), store.size_bytes) == (0, 0)


async def test_a_stream_dropped_while_it_is_read_keeps_the_account_right():
    store = PayloadStore(10**6)
    key = store.open_stream(LONG_S)
    stream = store.stream(key)
    for _ in range(2):
        await stream.append(payload())
    stream.take()
    store.drop(key)
    with pytest.raises(PayloadGoneError):
        stream.take()
    assert store.size_bytes == 0


async def test_what_lies_elsewhere_takes_none_of_the_stores_memory_and_is_freed_once():
    store, freed = PayloadStore(0), list[str]()
    key = store.hold_elsewhere(payload(), LONG_S, lambda: freed.append("memory"))
    store.when_dropped(key, lambda: freed.append("told"))
    assert (len(store), store.size_bytes) == (1, 0)
    store.drop(key)
    store.drop(key)
    assert freed == ["memory", "told"] and len(store) == 0
    with pytest.raises(PayloadGoneError):
        store.when_dropped(key, lambda: None)


async def test_what_lies_elsewhere_is_freed_at_its_deadline():
    store, freed = PayloadStore(0), asyncio.Event()
    store.hold_elsewhere(payload(), 0.01, freed.set)
    await asyncio.wait_for(freed.wait(), 5)
