"""Reads that fail, stall or are left alone: a block is never used again while the engine may still write into it."""

import asyncio

import pytest

from omni_contract.api.v1alpha1.mooncake import MooncakeTransferEngineConnector
from omni_runtime.connectors.budget import PayloadGoneError
from omni_runtime.connectors.mooncake.pool import Block, Pool
from omni_runtime.connectors.mooncake.pooled import ReadFailedError
from omni_runtime.connectors.mooncake.reads import Plan, Reads, Source
from tests.omni_runtime.connectors.mooncake.fakes import FakeEngine
from tests.omni_runtime.connectors.mooncake.worlds import LONG_S, host_pool, until


def always() -> bool:
    return True


WHOLE = Plan((8,), always)


@pytest.fixture
async def pool() -> Pool:
    return host_pool(64 * 1024)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(MooncakeTransferEngineConnector(), "127.0.0.1")


@pytest.fixture
async def reads(engine: FakeEngine):
    reads = Reads(engine)
    yield reads
    engine.gate.set()
    assert await reads.close(LONG_S)


async def source_of(pool: Pool, data: bytes) -> tuple[Block, Source]:
    block = await pool.take(len(data), LONG_S)
    block.write(0, memoryview(data))
    return block, Source("127.0.0.1:1", block.address)


async def test_a_read_fills_the_block(pool: Pool, reads: Reads):
    _, source = await source_of(pool, b"payload!")
    block = await pool.take(8, LONG_S)
    await reads.read(source, block, Plan((7,), always))
    assert bytes(block.read(0, 8)) == b"payload\0"


async def test_what_is_not_as_expected_after_any_of_the_reads_is_not_delivered(pool: Pool, reads: Reads):
    origin, source = await source_of(pool, b"payload!")
    for answers in ([False], [True, False]):
        with pytest.raises(PayloadGoneError):
            await reads.read(source, await pool.take(8, LONG_S), Plan((8, 4), lambda answers=answers: answers.pop(0)))
    origin.free()
    assert pool.used_bytes == 0


async def test_a_read_that_is_refused_frees_its_block(pool: Pool, engine: FakeEngine, reads: Reads):
    origin, source = await source_of(pool, b"payload!")
    engine.refusals = 1
    with pytest.raises(ReadFailedError):
        await reads.read(source, await pool.take(8, LONG_S), WHOLE)
    origin.free()
    assert pool.used_bytes == 0


async def test_the_block_of_a_read_that_nobody_waits_for_stays_taken_until_the_engine_has_ended(
    pool: Pool, engine: FakeEngine, reads: Reads
):
    origin, source = await source_of(pool, b"payload!")
    engine.gate.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await reads.read(source, await pool.take(8, LONG_S), WHOLE)
    await until(lambda: reads.abandoned == 1)
    origin.free()
    assert pool.used_bytes > 0
    engine.gate.set()
    await until(lambda: reads.abandoned == 0)
    assert pool.used_bytes == 0


async def test_stalled_reads_leave_their_threads_to_others(pool: Pool, engine: FakeEngine, reads: Reads):
    _, source = await source_of(pool, b"payload!")
    engine.gate.clear()
    stalled = [asyncio.create_task(reads.read(source, await pool.take(8, LONG_S), WHOLE)) for _ in range(40)]
    await asyncio.sleep(0)
    for task in stalled:
        task.cancel()
    await asyncio.wait(stalled)
    engine.gate.set()
    block = await pool.take(8, LONG_S)
    await asyncio.wait_for(reads.read(source, block, WHOLE), LONG_S)
    assert bytes(block.read(0, 8)) == b"payload!"
