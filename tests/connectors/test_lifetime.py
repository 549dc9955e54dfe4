"""Payloads end with their release, at their deadline, or with their owner; nothing stays behind, nothing hangs."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from omni_contract.wire.errors import TransferError
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.protocol import Census, MemoryPlace
from omni_runtime.connectors.store import PayloadStore
from tests.connectors import payloads
from tests.connectors.backends import Backend
from tests.connectors.peer import PATIENCE_S, Peer, Refused
from tests.support.process_census import Growth, ProcessCensus, census, growth

pytestmark = pytest.mark.connectors

MIB = 2**20
IDLE_GAP_S = 0.2
NOTHING = Census(payloads=0, size_bytes=0)


async def test_release_by_the_consumer_frees_the_owners_memory(peer: Peer, consumer: ConnectorSet):
    handle = await peer.put("raw", 1_000)
    await consumer.get(handle, PATIENCE_S)
    await consumer.release(handle)
    await peer.wait_free()


async def test_release_by_the_owner_and_a_second_release_are_harmless(peer: Peer, consumer: ConnectorSet):
    handle, other = await peer.put("raw", 1_000), await peer.put("raw", 1_000, 1)
    await peer.release(handle)
    await peer.release(handle)
    await consumer.release(handle)
    assert await consumer.get(other, PATIENCE_S) == payloads.raw(1_000, 1)
    await consumer.release(other)
    await consumer.release(other)
    await peer.wait_empty()


async def test_a_released_payload_is_gone_and_says_so(large_peer: Peer, consumer: ConnectorSet):
    handle = await large_peer.put("raw", MIB)
    await large_peer.release(handle)
    with pytest.raises(TransferError, match=r'edge "a->b": owner unix:.* not held here .*request r-1'):
        await consumer.get(handle, PATIENCE_S)


async def test_what_is_read_and_what_fails_is_counted(large_peer: Peer, consumer: ConnectorSet):
    handle = await large_peer.put("raw", MIB)
    await consumer.get(handle, PATIENCE_S)
    await large_peer.release(handle)
    with pytest.raises(TransferError):
        await consumer.get(handle, PATIENCE_S)
    counters = consumer.health()["shm" if handle.connector == "auto" else handle.connector].counters
    assert (counters.gets, counters.get_bytes, counters.errors) == (1, handle.size_bytes, 1)


async def test_a_late_reader_gets_the_payload_until_the_deadline_and_an_error_after(
    large_peer: Peer, consumer: ConnectorSet
):
    handle = await large_peer.put("raw", MIB, 0, remaining_s=0.2)
    assert await consumer.get(handle, PATIENCE_S) == payloads.raw(MIB)
    await large_peer.wait_free()
    with pytest.raises(TransferError, match="not held here"):
        await consumer.get(handle, PATIENCE_S)


async def test_a_reader_without_time_left_is_refused(large_peer: Peer, consumer: ConnectorSet):
    with pytest.raises(TransferError, match="deadline had passed"):
        await consumer.get(await large_peer.put("raw", MIB), 0.0)


@pytest.mark.case("runtime:X6")
async def test_a_silent_owner_costs_no_more_than_the_readers_deadline(
    large_backend: Backend, large_peer: Peer, consumer: ConnectorSet
):
    handle = await large_peer.put("raw", MIB)
    os.kill(large_peer.process.pid, signal.SIGSTOP)
    if large_backend.is_read_in_place:
        assert await consumer.get(handle, 0.3) == payloads.raw(MIB)
    else:
        with pytest.raises(TransferError, match=r"did not deliver within 0\.3 s"):
            await consumer.get(handle, 0.3)
    os.kill(large_peer.process.pid, signal.SIGCONT)
    assert await consumer.get(handle, PATIENCE_S) == payloads.raw(MIB)


@pytest.mark.case("runtime:X3")
async def test_an_owner_that_died_before_the_transfer_is_named(large_peer: Peer, consumer: ConnectorSet):
    handle = await large_peer.put("raw", MIB)
    await large_peer.kill()
    with pytest.raises(TransferError, match=r"owner unix:.* is gone or cannot be reached"):
        await consumer.get(handle, PATIENCE_S)


async def test_an_owner_that_dies_during_the_transfer_is_named_unless_it_is_needed_no_more(
    large_backend: Backend, large_peer: Peer, consumer: ConnectorSet
):
    handle = await large_peer.put("raw", 64 * MIB)
    await consumer.get(await large_peer.put("raw", 70_000), PATIENCE_S)
    os.kill(large_peer.process.pid, signal.SIGSTOP)
    getting = asyncio.create_task(consumer.get(handle, PATIENCE_S))
    await asyncio.sleep(0)
    await large_peer.kill()
    if large_backend.is_read_in_place:
        assert await getting == payloads.raw(64 * MIB)
    else:
        with pytest.raises(TransferError, match="is gone or cannot be reached"):
            await getting


async def test_an_owner_that_died_after_the_transfer_does_not_disturb_the_consumer(peer: Peer, consumer: ConnectorSet):
    handle = await peer.put("raw", 1_000)
    received = await consumer.get(handle, PATIENCE_S)
    await peer.kill()
    await consumer.release(handle)
    assert received == payloads.raw(1_000)


async def test_a_handle_of_the_owners_former_life_is_refused(
    large_backend: Backend, memory: MemoryPlace, consumer: ConnectorSet, tmp_path: Path
):
    async with Peer(large_backend, memory, tmp_path, boot_id="boot-1") as first:
        old = await first.put("raw", MIB)
        await first.kill()
    async with Peer(large_backend, memory, tmp_path, boot_id="boot-2") as second:
        new = await second.put("raw", MIB, 1)
        with pytest.raises(TransferError, match=r"owner has restarted since|is gone or cannot be reached"):
            await consumer.get(old, PATIENCE_S)
        await consumer.release(old)
        assert await consumer.get(new, PATIENCE_S) == payloads.raw(MIB, 1)


async def test_an_aborted_transfer_leaves_the_payload_and_nothing_else(large_peer: Peer, consumer: ConnectorSet):
    handle = await large_peer.put("raw", 64 * MIB)
    await consumer.get(handle, PATIENCE_S)
    before = census(os.getpid()).descriptors, census(large_peer.process.pid).descriptors
    os.kill(large_peer.process.pid, signal.SIGSTOP)
    getting = asyncio.create_task(consumer.get(handle, PATIENCE_S))
    await asyncio.sleep(0)
    getting.cancel()
    # One that is read in place may have arrived before the abort.
    with suppress(asyncio.CancelledError):
        await getting
    del getting
    os.kill(large_peer.process.pid, signal.SIGCONT)
    assert await consumer.get(handle, PATIENCE_S) == payloads.raw(64 * MIB)
    assert (await large_peer.census()).payloads == 1
    assert (census(os.getpid()).descriptors, census(large_peer.process.pid).descriptors) == before


async def test_a_full_store_refuses_with_its_limit_and_takes_again_after_a_release(
    large_backend: Backend, memory: MemoryPlace, consumer: ConnectorSet, tmp_path: Path
):
    mib = large_backend.smallest_mib
    # What `auto` cannot put into shared memory goes into the store.
    sized = large_backend.sized(1 if large_backend.connector == "auto" else mib)
    settings = sized | {"waitSeconds": 0.05} if sized else {}
    async with Peer(large_backend, memory, tmp_path, limit_bytes=mib * MIB, settings=settings) as peer:
        most = 2 * mib * MIB // 3
        first = await peer.put("raw", most)
        with pytest.raises(Refused, match=rf"no room for .* bytes.*: .* of {mib * MIB:,} bytes are in use"):
            await peer.put("raw", most)
        assert (await peer.census()).payloads == 1
        await consumer.release(first)
        await peer.wait_empty()
        assert await consumer.get(await peer.put("raw", most), PATIENCE_S) == payloads.raw(most)


@pytest.mark.case("runtime:M6")
async def test_ten_thousand_transfers_leave_nothing_behind(backend: Backend, peer: Peer, consumer: ConnectorSet):
    async def take(handle: Handle, seed: int) -> None:
        assert await consumer.get(handle, PATIENCE_S) == payloads.raw(500, seed)
        await consumer.release(handle)

    async def transfer_fifty() -> None:
        handles = await peer.put_all("raw", [(500, seed) for seed in range(50)])
        await asyncio.gather(*(take(handle, seed) for seed, handle in enumerate(handles)))

    # Libraries open their connections as they need them, up to their limits.
    for _ in range(10):
        await transfer_fifty()
    await peer.wait_empty()
    before = census_of_both(peer)
    for number in range(200):
        await transfer_fifty()
        if number % 50 == 0:
            await asyncio.sleep(IDLE_GAP_S)
    await peer.wait_free()
    grown = growth(before, census_of_both(peer), slack_kib=32 * 1024)
    assert [one for one in grown if not is_of_the_pool(one, backend)] == []


def is_of_the_pool(grown: Growth, backend: Backend) -> bool:
    return grown.what in ("descriptors", "sockets") and grown.after - grown.before <= backend.pooled_connections


def census_of_both(peer: Peer) -> dict[str, ProcessCensus]:
    return {"consumer": census(os.getpid()), "producer": census(peer.process.pid)}


async def test_closing_a_process_connectors_lets_go_of_all_it_held():
    connectors = ConnectorSet("unix:nowhere", "boot", PayloadStore(MIB))
    await connectors.open()
    await connectors.connector("grpc").put("r-1", "a->b", payloads.raw(1_000), PATIENCE_S)
    await connectors.connector("auto").open_stream("r-1", "a->b", PATIENCE_S)
    assert connectors.census().payloads == 2
    await connectors.close()
    assert connectors.census() == NOTHING
