"""Owner and reader of one arena, here in one process: leases are of open files, so they meet as between processes."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from omni_contract.wire.codec import EncodedPayload
from omni_runtime.connectors.budget import PayloadGoneError
from omni_runtime.connectors.shm.arena import HEADER_BYTES, STEP_BYTES, Arena, ArenaFullError, Block
from omni_runtime.connectors.shm.folder import ArenaError
from omni_runtime.connectors.shm.reading import OWNER_SEEN_S, ForeignArenas, OwnerGoneError

KIB = 1024
KEY, OTHER_KEY = "k" * 24, "o" * 24


@pytest.fixture
async def arena(folder: Path) -> AsyncIterator[Arena]:
    made = Arena(folder, 16 * KIB)
    yield made
    await made.close()


@pytest.fixture
async def readers(folder: Path) -> AsyncIterator[ForeignArenas]:
    made = ForeignArenas(folder)
    yield made
    made.close()


def encoded(data: bytes) -> EncodedPayload:
    return EncodedPayload((memoryview(data),), len(data))


async def put(arena: Arena, data: bytes, key: str = KEY) -> Block:
    block = await arena.reserve(len(data), 1.0)
    await arena.fill(block, encoded(data))
    arena.sign(block, key)
    return block


async def until_blocks(arena: Arena, blocks: int) -> None:
    async with asyncio.timeout(10):
        while True:
            if arena.census().blocks == blocks:
                return
            await asyncio.sleep(0)


async def test_a_reader_sees_the_payload_in_place(arena: Arena, readers: ForeignArenas) -> None:
    block = await put(arena, b"first")

    view = readers.arena(arena.name).read(block.offset, KEY, 5)
    assert bytes(view) == b"first"

    block.memory[:5] = b"FIRST"
    assert bytes(view) == b"FIRST"
    with pytest.raises(TypeError, match="read-only"):
        view[0] = 0


async def test_a_block_is_free_once_its_last_view_is_gone(arena: Arena) -> None:
    block = await put(arena, bytes(8 * KIB))
    part = block.memory[100:200]

    del block
    await asyncio.sleep(0)
    assert arena.census().blocks == 1

    del part
    await until_blocks(arena, 0)


async def test_a_block_with_a_reader_is_not_used_again_however_long_its_payload_is_gone(
    arena: Arena, readers: ForeignArenas
) -> None:
    block = await put(arena, b"x" * (9 * KIB))
    view = readers.arena(arena.name).read(block.offset, KEY, 9 * KIB)
    tensor = view[KIB:]
    del block, view
    await asyncio.sleep(0.1)

    assert await arena.try_reserve(9 * KIB) is None
    assert (arena.census().blocks, arena.census().lingering) == (1, 1)
    assert bytes(tensor) == b"x" * (8 * KIB)

    del tensor
    await until_blocks(arena, 0)
    assert await arena.try_reserve(9 * KIB) is not None


async def test_two_reads_of_one_block_hold_it_until_both_are_gone(arena: Arena, readers: ForeignArenas) -> None:
    block = await put(arena, b"twice")
    first, second = (readers.arena(arena.name).read(block.offset, KEY, 5) for _ in range(2))
    del block, first
    await asyncio.sleep(0.1)
    assert arena.census().blocks == 1
    assert bytes(second) == b"twice"


async def test_a_view_may_end_on_any_thread(arena: Arena, readers: ForeignArenas) -> None:
    block = await put(arena, b"elsewhere")
    held = [readers.arena(arena.name).read(block.offset, KEY, 9)]
    del block

    threading.Thread(target=held.clear).start()

    await until_blocks(arena, 0)


async def test_views_in_a_cycle_are_found_by_the_collector(arena: Arena) -> None:
    block = await put(arena, b"cycle")
    cycle: list[object] = [block]
    cycle.append(cycle)
    del block, cycle

    gc.collect()

    await until_blocks(arena, 0)


async def test_a_reader_comes_too_late_for_a_payload_that_is_gone(arena: Arena, readers: ForeignArenas) -> None:
    block = await put(arena, b"early")
    arena.forget(block.offset)

    with pytest.raises(PayloadGoneError, match="not held here"):
        readers.arena(arena.name).read(block.offset, KEY, 5)


async def test_a_reader_with_an_old_handle_does_not_see_the_next_payload(arena: Arena, readers: ForeignArenas) -> None:
    first = await put(arena, b"first")
    offset = first.offset
    del first
    await until_blocks(arena, 0)
    second = await put(arena, b"other", OTHER_KEY)
    assert second.offset == offset

    with pytest.raises(PayloadGoneError, match="not held here"):
        readers.arena(arena.name).read(offset, KEY, 5)


@pytest.mark.parametrize(("offset", "size_bytes"), [(0, 6), (0, 2**50), (16 * KIB, 5), (-64, 5)])
async def test_a_handle_that_lies_about_its_place_is_refused(
    arena: Arena, readers: ForeignArenas, offset: int, size_bytes: int
) -> None:
    block = await put(arena, b"small")
    assert block.offset == 0

    with pytest.raises(PayloadGoneError):
        readers.arena(arena.name).read(offset, KEY, size_bytes)


async def test_a_read_that_fails_leaves_no_lease(arena: Arena, readers: ForeignArenas) -> None:
    block = await put(arena, b"wrong")
    with pytest.raises(PayloadGoneError):
        readers.arena(arena.name).read(block.offset, OTHER_KEY, 5)
    del block
    await until_blocks(arena, 0)


async def test_an_owner_that_has_ended_is_noticed_and_its_memory_given_back(
    folder: Path, readers: ForeignArenas
) -> None:
    dying, living = Arena(folder, 16 * KIB), Arena(folder, 16 * KIB)
    block = await put(dying, b"orphan")
    view = readers.arena(dying.name).read(block.offset, KEY, 6)
    await dying.close()
    await asyncio.sleep(OWNER_SEEN_S)

    with pytest.raises(OwnerGoneError):
        readers.arena(dying.name).read(block.offset, KEY, 6)
    assert bytes(view) == b"orphan"

    del view
    await asyncio.sleep(0)
    readers.arena(living.name)
    assert readers.known(dying.name) is None
    del block
    await living.close()


async def test_whoever_waits_for_room_gets_it_in_the_order_of_arrival(arena: Arena) -> None:
    held = [await arena.reserve(7 * KIB, 1.0) for _ in range(2)]
    order: list[str] = []

    async def wait(name: str, size_bytes: int) -> None:
        block = await arena.reserve(size_bytes, 5.0)
        order.append(name)
        del block

    waiting = [asyncio.create_task(wait("large", 14 * KIB)), asyncio.create_task(wait("small", KIB))]
    await asyncio.sleep(0)
    assert await arena.try_reserve(64) is None
    held.clear()
    await asyncio.gather(*waiting)

    assert order == ["large", "small"]


async def test_a_wait_for_room_ends_with_the_figures(arena: Arena) -> None:
    block = await arena.reserve(10 * KIB, 1.0)

    with pytest.raises(ArenaFullError, match=r"10,304 of 16,384 bytes are in use"):
        await arena.reserve(10 * KIB, 0.02)

    assert block.memory.nbytes == 10 * KIB
    assert await arena.try_reserve(5 * KIB) is not None


async def test_a_wait_that_is_cancelled_takes_nothing(arena: Arena) -> None:
    block = await arena.reserve(10 * KIB, 1.0)
    waiting = asyncio.create_task(arena.reserve(10 * KIB, 5.0))
    await asyncio.sleep(0)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    del block
    await until_blocks(arena, 0)
    assert await arena.try_reserve(arena.capacity_bytes) is not None


async def test_a_whole_arena_holds_one_payload_of_its_capacity(arena: Arena) -> None:
    assert arena.capacity_bytes == 16 * KIB - HEADER_BYTES
    assert await arena.try_reserve(arena.capacity_bytes) is not None
    assert await arena.try_reserve(arena.capacity_bytes + 1) is None


async def test_a_closed_arena_leaves_no_file(folder: Path) -> None:
    arena = Arena(folder, 16 * KIB)
    block = await put(arena, b"in flight")

    await arena.close()

    assert not any(folder.iterdir())  # noqa: ASYNC240 - one look
    assert bytes(block.memory) == b"in flight"


async def test_an_arena_that_grows_takes_memory_when_a_block_needs_it(folder: Path) -> None:
    arena = Arena(folder, 4 * STEP_BYTES, grows=True)
    assert taken_bytes(folder) == STEP_BYTES
    first = await arena.try_reserve(STEP_BYTES // 2)
    assert taken_bytes(folder) == STEP_BYTES
    second, third = await asyncio.gather(arena.try_reserve(STEP_BYTES), arena.try_reserve(STEP_BYTES // 4))
    assert first and second and third
    assert taken_bytes(folder) == 2 * STEP_BYTES
    second.memory[:] = bytes(STEP_BYTES)
    await arena.close()


def taken_bytes(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.iterdir())


async def test_memory_that_is_not_there_makes_a_growing_arena_full(folder: Path) -> None:
    arena, too_much = Arena(folder, 2**44, grows=True), 2**43
    assert await arena.try_reserve(too_much) is None
    with pytest.raises(ArenaFullError, match="has no memory beyond 16,777,216 bytes"):
        await arena.reserve(too_much, 1.0)
    await until_blocks(arena, 0)
    assert await arena.try_reserve(STEP_BYTES // 2) is not None
    await arena.close()


async def test_an_arena_that_no_process_can_map_leaves_no_file_behind(folder: Path) -> None:
    with pytest.raises(
        ArenaError, match=r"gives no 1,125,899,906,842,624 bytes of memory \(.*Cannot allocate memory\)"
    ):
        Arena(folder, 2**50, grows=True)
    assert arenas_in(folder) == []


def arenas_in(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]
