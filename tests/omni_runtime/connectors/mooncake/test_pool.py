"""Blocks of the pool: theirs alone while they are in use, free again once nobody looks."""

import asyncio
import gc

import pytest

from omni_contract.wire.codec import encode
from omni_runtime.connectors.budget import PayloadGoneError, StoreFullError
from omni_runtime.connectors.mooncake.memory import COPY_BYTES
from tests.omni_runtime.connectors.mooncake.worlds import LONG_S, host_pool

KIB = 1024


async def test_a_block_is_filled_with_the_bytes_of_a_payload():
    payload = encode({"text": "Grüße", "data": bytes(range(256)) * 40})
    pool = host_pool(64 * KIB)
    block = await pool.take(64 + payload.size_bytes, LONG_S)
    await block.fill(payload, start=64)
    assert bytes(block.read(64, payload.size_bytes)) == payload.to_bytes()
    assert b"".join(block.slices(64, 1_000)) == payload.to_bytes()


async def test_filling_a_large_block_lets_the_event_loop_have_its_turn():
    pool, turns = host_pool(4 * COPY_BYTES), 0
    block = await pool.take(3 * COPY_BYTES, LONG_S)

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await block.fill(encode({"data": bytes(2 * COPY_BYTES)}), start=0)
    counting.cancel()
    assert turns >= 2


async def test_a_lent_block_is_free_once_the_last_view_of_it_is_gone():
    pool = host_pool(64 * KIB)
    view = await (await pool.take(8 * KIB, LONG_S)).lend()
    part = view[100:200]
    del view
    assert pool.used_bytes == 8 * KIB
    del part
    gc.collect()
    assert pool.used_bytes == 0


async def test_who_finds_the_pool_full_waits_for_a_block_to_be_given_back():
    pool = host_pool(64 * KIB)
    first = await pool.take(40 * KIB, LONG_S)
    waiting = asyncio.create_task(pool.take(40 * KIB, LONG_S))
    await asyncio.sleep(0)
    assert not waiting.done()
    first.free()
    first.free()
    assert (await asyncio.wait_for(waiting, LONG_S)).size_bytes == 40 * KIB


async def test_a_view_that_goes_wakes_who_waits():
    pool = host_pool(64 * KIB)
    views = [await (await pool.take(40 * KIB, LONG_S)).lend()]
    waiting = asyncio.create_task(pool.take(40 * KIB, LONG_S))
    await asyncio.sleep(0)
    views.clear()
    gc.collect()
    await asyncio.wait_for(waiting, LONG_S)


async def test_a_pool_that_stays_full_says_how_full_and_one_that_is_too_small_says_so_at_once():
    pool = host_pool(64 * KIB)
    await pool.take(40 * KIB, LONG_S)
    with pytest.raises(StoreFullError, match="no room for 40,960 bytes: 40,960 of 65,536 bytes are in use"):
        await pool.take(40 * KIB, 0.01)
    with pytest.raises(StoreFullError, match="65,600 bytes are more than the 65,536 that there are in all"):
        await asyncio.wait_for(pool.take(64 * KIB + 64, LONG_S), 5)


async def test_a_block_that_is_given_back_while_it_is_handed_out_breaks_off():
    pool = host_pool(64 * KIB)
    block = await pool.take(8 * KIB, LONG_S)
    slices = block.slices(0, KIB)
    next(slices)
    block.free()
    with pytest.raises(PayloadGoneError, match="released during its transfer"):
        next(slices)
