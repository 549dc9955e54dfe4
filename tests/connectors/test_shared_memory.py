"""What only shared memory has: payloads read in place, blocks that are used again, arenas that outlive their owner."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from omni_contract.wire.errors import TransferError
from omni_contract.wire.payload import Payload
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.protocol import MemoryPlace
from omni_runtime.connectors.shm.locator import locator_of
from omni_runtime.connectors.store import PayloadStore
from tests.connectors import payloads
from tests.connectors.backends import BACKENDS
from tests.connectors.peer import LIMIT_BYTES, LOCALITY, PATIENCE_S, Peer, Refused

pytestmark = pytest.mark.connectors

MIB = 2**20
(SHM,) = (backend for backend in BACKENDS if backend.title == "shm")
(AUTO,) = (backend for backend in BACKENDS if backend.title == "auto on one host")
SMALL = {"size": "8Mi", "waitSeconds": 0.1}


@pytest.fixture
async def reader(memory: MemoryPlace) -> AsyncIterator[ConnectorSet]:
    async with consumer_in(memory) as connectors:
        yield connectors


@asynccontextmanager
async def consumer_in(memory: MemoryPlace) -> AsyncIterator[ConnectorSet]:
    """A consuming process' connectors."""
    connectors = ConnectorSet("", "consumer", PayloadStore(LIMIT_BYTES), SHM.specs(), memory=memory)
    await connectors.open()
    yield connectors
    await connectors.close()


async def chunks_of(consumer: ConnectorSet, handle: Handle) -> list[Payload]:
    return [chunk async for chunk in consumer.chunks(handle, PATIENCE_S)]


def mappings(folder: Path, process: int | str = "self") -> list[str]:
    """The lines of a process's memory map that are arenas."""
    return [line for line in Path(f"/proc/{process}/maps").read_text().splitlines() if str(folder) in line]


async def test_an_arena_is_mapped_once_and_read_only_however_many_payloads_come_through(
    memory: MemoryPlace, reader: ConnectorSet, tmp_path: Path
) -> None:
    async with Peer(SHM, memory, tmp_path, settings=SMALL) as peer:
        for seed in range(20):
            handle = await peer.put("raw", MIB, seed)
            assert await reader.get(handle, PATIENCE_S) == payloads.raw(MIB, seed)
            await reader.release(handle)
            await peer.wait_free()
        (line,) = mappings(memory.folder)
    assert " r--s " in line


@pytest.mark.case("runtime:M4")
async def test_what_a_reader_still_looks_at_is_not_overwritten_after_its_deadline(
    memory: MemoryPlace, reader: ConnectorSet, tmp_path: Path
) -> None:
    async with Peer(SHM, memory, tmp_path, settings=SMALL) as peer:
        received = await reader.get(await peer.put("raw", 3 * MIB, 1, remaining_s=0.05), PATIENCE_S)
        await peer.wait_empty()
        for seed in range(10):
            await peer.release(await peer.put("raw", 3 * MIB, seed))
        with pytest.raises(Refused, match="no room"):
            await peer.put("raw", 6 * MIB)
        assert received == payloads.raw(3 * MIB, 1)
        del received
        await peer.wait_free()
        await peer.put("raw", 6 * MIB)


async def test_a_release_takes_effect_once_the_last_view_is_gone(
    memory: MemoryPlace, reader: ConnectorSet, tmp_path: Path
) -> None:
    async with Peer(SHM, memory, tmp_path, settings=SMALL) as peer:
        handle = await peer.put("raw", MIB)
        received = await reader.get(handle, PATIENCE_S)
        await reader.release(handle)
        await asyncio.sleep(0.05)
        assert (await peer.census()).payloads == 1
        del received
        await peer.wait_free()


async def test_a_reader_that_is_killed_frees_what_it_read(memory: MemoryPlace, tmp_path: Path) -> None:
    async with Peer(SHM, memory, tmp_path, settings=SMALL) as peer:
        handle = await peer.put("raw", MIB)
        reading = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", READ_AND_WAIT, memory.folder, LOCALITY, handle.SerializeToString().hex()),
            stdout=asyncio.subprocess.PIPE,
        )
        assert reading.stdout is not None
        assert await reading.stdout.readline() == b"reading\n"
        await peer.release(handle)
        await asyncio.sleep(0.1)
        assert (await peer.census()).size_bytes > MIB
        reading.kill()
        await reading.wait()
        await peer.wait_free()


async def test_what_was_received_stays_whole_when_its_owner_is_killed_and_replaced(
    memory: MemoryPlace, reader: ConnectorSet, tmp_path: Path
) -> None:
    async with Peer(SHM, memory, tmp_path, settings=SMALL) as first:
        received = await reader.get(await first.put("raw", MIB, 1), PATIENCE_S)
        await first.kill()
    async with Peer(SHM, memory, tmp_path, boot_id="boot-2", settings=SMALL) as second:
        other = await reader.get(await second.put("raw", MIB, 2), PATIENCE_S)
        assert received == payloads.raw(MIB, 1)
        assert other == payloads.raw(MIB, 2)
        assert len(mappings(memory.folder)) == 2


@pytest.mark.case("runtime:M2", "runtime:M3")
async def test_the_memory_of_killed_owners_is_given_back_by_those_who_come_after(
    memory: MemoryPlace, reader: ConnectorSet, tmp_path: Path
) -> None:
    for number in range(4):
        async with Peer(SHM, memory, tmp_path, boot_id=f"boot-{number}", settings=SMALL) as peer:
            handle = await peer.put("raw", MIB)
            await reader.get(handle, PATIENCE_S)
            assert [path.name for path in memory.folder.iterdir()] == [locator_of(handle).arena]
            assert len(mappings(memory.folder)) == 1
            await peer.kill()


async def test_a_process_that_ends_in_order_leaves_no_file(memory: MemoryPlace, tmp_path: Path) -> None:
    async with Peer(SHM, memory, tmp_path, settings=SMALL) as peer:
        await peer.put("raw", MIB)
        assert len(list(memory.folder.iterdir())) == 1
        await peer.close()
        assert list(memory.folder.iterdir()) == []


async def test_two_producers_in_one_folder_do_not_disturb_each_other(
    memory: MemoryPlace, reader: ConnectorSet, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    async with Peer(SHM, memory, tmp_path / "a", settings=SMALL) as one:
        handle = await one.put("raw", MIB, 1)
        async with Peer(SHM, memory, tmp_path / "b", settings=SMALL) as other:
            assert await reader.get(await other.put("raw", MIB, 2), PATIENCE_S) == payloads.raw(MIB, 2)
        assert await reader.get(handle, PATIENCE_S) == payloads.raw(MIB, 1)


async def test_a_payload_that_never_fits_is_refused_with_the_field_to_raise(
    memory: MemoryPlace, tmp_path: Path
) -> None:
    async with Peer(SHM, memory, tmp_path, settings=SMALL) as peer:
        with pytest.raises(
            Refused, match=r'8,388,\d+ bytes is larger than the arena; raise shm.size of connector "shm", now 8Mi'
        ):
            await peer.put("raw", 8 * MIB)


async def test_a_full_arena_makes_producers_wait_until_there_is_room(
    memory: MemoryPlace, reader: ConnectorSet, tmp_path: Path
) -> None:
    async with Peer(SHM, memory, tmp_path, settings={"size": "8Mi", "waitSeconds": 60}) as peer:
        first = await peer.put("raw", 5 * MIB)
        second = peer.begin("put", maker="raw", arguments=[5 * MIB, 1], remaining_s=PATIENCE_S)
        assert (await peer.census()).payloads == 1
        assert not second.done()
        await reader.release(first)
        handle = Handle.FromString(bytes.fromhex((await second)["handle"]))
        assert await reader.get(handle, PATIENCE_S) == payloads.raw(5 * MIB, 1)


async def test_a_producer_waits_for_room_no_longer_than_its_deadline(memory: MemoryPlace, tmp_path: Path) -> None:
    async with Peer(SHM, memory, tmp_path, settings={"size": "8Mi", "waitSeconds": 60}) as peer:
        await peer.put("raw", 5 * MIB)
        with pytest.raises(
            Refused,
            match=r"no room for 5,.* bytes within 0\.2 s: 5,.* of 8,388,608 bytes are in use; raise shm.size of "
            r'connector "shm", now 8Mi',
        ):
            await peer.put("raw", 5 * MIB, 1, remaining_s=0.2)


async def test_auto_does_not_wait_for_shared_memory_but_takes_grpc(
    memory: MemoryPlace, reader: ConnectorSet, tmp_path: Path
) -> None:
    async with Peer(AUTO, memory, tmp_path, settings=SMALL) as peer:
        handles = [await peer.put("raw", 5 * MIB, seed) for seed in range(2)]
        handles.append(await peer.put("raw", 9 * MIB, 2))
        assert [handle.connector for handle in handles] == ["auto", "grpc", "grpc"]
        for seed, size_bytes in enumerate((5 * MIB, 5 * MIB, 9 * MIB)):
            assert await reader.get(handles[seed], PATIENCE_S) == payloads.raw(size_bytes, seed)


async def test_large_chunks_of_autos_streams_lie_in_shared_memory_as_long_as_they_find_room(
    memory: MemoryPlace, reader: ConnectorSet, tmp_path: Path
) -> None:
    sizes = (3 * MIB, 100, 3 * MIB, 3 * MIB, 0)
    async with Peer(AUTO, memory, tmp_path, settings=SMALL) as peer:
        handle = await peer.open_stream()
        await peer.append(handle, *sizes)
        # The third large one finds no room beside the others.
        held_bytes = (await peer.census()).size_bytes
        await peer.end_stream(handle)
        assert await chunks_of(reader, handle) == [payloads.raw(size_bytes, n) for n, size_bytes in enumerate(sizes)]
        shared, streamed = (reader.health()[name].counters for name in ("shm", "grpc"))
        assert held_bytes > 6 * MIB and (shared.gets, streamed.chunks) == (2, len(sizes))
        await reader.release(handle)
        await peer.wait_free()


async def test_a_consumer_elsewhere_reads_autos_streams(memory: MemoryPlace, tmp_path: Path) -> None:
    async with Peer(AUTO, memory, tmp_path, settings=SMALL) as peer:
        handle = await peer.open_stream()
        await peer.append(handle, MIB, 100)
        await peer.end_stream(handle)
        async with consumer_in(MemoryPlace(memory.folder, "other-host")) as consumer:
            assert await chunks_of(consumer, handle) == [payloads.raw(MIB, 0), payloads.raw(100, 1)]
            await consumer.release(handle)
            await peer.wait_free()


async def test_an_owner_that_drops_its_own_payload_does_not_map_its_arena_a_second_time(
    memory: MemoryPlace, tmp_path: Path
) -> None:
    async with Peer(AUTO, memory, tmp_path, settings=SMALL) as peer:
        handle = await peer.put("raw", MIB)
        assert handle.connector == "auto"
        await peer.release(handle)
        await peer.wait_free()
        assert len(mappings(memory.folder, peer.process.pid)) == 1


async def test_a_consumer_elsewhere_fetches_what_auto_put_into_shared_memory(
    memory: MemoryPlace, tmp_path: Path
) -> None:
    async with Peer(AUTO, memory, tmp_path, settings=SMALL) as peer:
        handle = await peer.put("raw", MIB)
        for elsewhere in (MemoryPlace(memory.folder, "other-host"), MemoryPlace(tmp_path, LOCALITY)):
            async with consumer_in(elsewhere) as consumer:
                assert await consumer.get(handle, PATIENCE_S) == payloads.raw(MIB)
        frontend = ConnectorSet("", "frontend", PayloadStore(LIMIT_BYTES))
        assert await frontend.get(handle, PATIENCE_S) == payloads.raw(MIB)
        await frontend.release(handle)
        await frontend.close()
        await peer.wait_empty()
        assert mappings(memory.folder) == []


async def test_a_consumer_elsewhere_is_told_that_shm_cannot_reach_it(memory: MemoryPlace, tmp_path: Path) -> None:
    async with Peer(SHM, memory, tmp_path, settings=SMALL) as peer:
        handle = await peer.put("raw", MIB)
        async with consumer_in(MemoryPlace(memory.folder, "other-host")) as consumer:
            with pytest.raises(TransferError, match='memory of "this-host", not of "other-host"; use connector auto'):
                await consumer.get(handle, PATIENCE_S)


async def test_a_checksum_finds_damage(memory: MemoryPlace, reader: ConnectorSet, tmp_path: Path) -> None:
    async with Peer(SHM, memory, tmp_path, settings=SMALL | {"checksum": True}) as peer:
        handle = await peer.put("raw", MIB)
        locator = locator_of(handle)
        with (memory.folder / locator.arena).open("r+b") as arena:
            arena.seek(locator.offset + 512 * 1024)
            arena.write(b"damage")
        with pytest.raises(TransferError, match="checksum"):
            await reader.get(handle, PATIENCE_S)


async def test_a_handle_without_a_place_is_refused(memory: MemoryPlace, reader: ConnectorSet, tmp_path: Path) -> None:
    async with Peer(SHM, memory, tmp_path, settings=SMALL) as peer:
        handle = await peer.put("raw", MIB)
        for locator in (b"", b"{}", b"../passwd 0 this-host", handle.locator[:40]):
            handle.locator = locator
            with pytest.raises(TransferError, match="names no place in shared memory"):
                await reader.get(handle, PATIENCE_S)


async def test_large_chunks_of_a_stream_are_read_in_place_and_end_with_it(
    memory: MemoryPlace, reader: ConnectorSet, tmp_path: Path
) -> None:
    async with Peer(SHM, memory, tmp_path, settings=SMALL) as peer:
        handle = await peer.open_stream()
        await peer.append(handle, MIB, 10, MIB)
        assert (await peer.census()).size_bytes >= 2 * MIB
        chunks = reader.connector("shm").chunks(handle, PATIENCE_S)
        first = await anext(chunks)
        assert first == payloads.raw(MIB, 0)
        assert mappings(memory.folder)
        await reader.release(handle)
        await peer.wait_empty()
        assert first == payloads.raw(MIB, 0)
        del first
        await chunks.aclose()
        await peer.wait_free()


READ_AND_WAIT = """
import asyncio, sys
from pathlib import Path
from omni_contract.api.v1alpha1 import built_in_connector
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.protocol import MemoryPlace
from omni_runtime.connectors.store import PayloadStore

async def main(folder, locality, handle):
    memory = MemoryPlace(Path(folder), locality)
    connectors = ConnectorSet("", "doomed", PayloadStore(2**30), [built_in_connector("shm")], memory=memory)
    received = await connectors.get(Handle.FromString(bytes.fromhex(handle)), 10)
    print("reading", flush=True)
    await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""
