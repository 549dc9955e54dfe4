"""Our connector over Mooncake's transfer engine beside the raw wheel, TCP on loopback: `python -m benchmarks.mooncake`.

Another process owns the payloads. A get is ours from the handle to the decoded payload; the peer's is one read of as
many bytes between memory that was registered before, by whichever of its two calls is faster at that size. Both take
turns. After each silence, the first transfer of either is timed as well.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ledger import write_entry
from benchmarks.mooncake_peer import CONNECTOR, KEEP_S, MIB, connectors
from benchmarks.mooncake_raw import RawEngine
from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.connector_set import ConnectorSet

COMMAND = "python -m benchmarks.mooncake"
PEER = "the wheel's own read between registered memory, the faster of two calls"
ROUNDS = {64 * 2**10: 200, MIB: 100, 16 * MIB: 30, 64 * MIB: 15, 256 * MIB: 7}
"""Rounds by size."""
NAMES = {64 * 2**10: "64KiB", MIB: "1MiB", 16 * MIB: "16MiB", 64 * MIB: "64MiB", 256 * MIB: "256MiB"}
HEADLINE = 64 * MIB
GAPS_S = (5, 30, 90)
GAP_SIZE = 16 * MIB


@dataclass(frozen=True)
class Sides:
    """Seconds of one transfer, ours and the peer's."""

    ours: float
    peer: float

    @property
    def ratio(self) -> float:
        """Our throughput as a part of the peer's."""
        return self.peer / self.ours


class Pair:
    """Ours and the raw engine of this process, in turns."""

    def __init__(self, ours: ConnectorSet, raw: RawEngine, owner: dict[str, object], sizes: list[int]) -> None:
        self._ours = ours.connector(CONNECTOR)
        self._raw = raw
        self._session, self._address = str(owner["session"]), int(str(owner["address"]))
        texts = owner["handles"]
        assert isinstance(texts, list)
        self._handles = dict(zip(sizes, (Handle.FromString(bytes.fromhex(text)) for text in texts), strict=True))

    async def ours_s(self, size: int) -> float:
        begun_s = time.perf_counter()
        payload = await self._ours.get(self._handles[size], KEEP_S)
        taken_s = time.perf_counter() - begun_s
        assert payload
        return taken_s

    def peer_s(self, size: int, way: str) -> float:
        begun_s = time.perf_counter()
        self._raw.ways[way](self._session, self._address, size)
        return time.perf_counter() - begun_s

    async def compare(self, size: int, rounds: int) -> Sides:
        ours: list[float] = []
        peers: dict[str, list[float]] = {way: [] for way in self._raw.ways}
        for number in range(rounds + 2):
            measured = await self.ours_s(size), {way: self.peer_s(size, way) for way in peers}
            if number >= 2:
                ours.append(measured[0])
                for way, taken_s in measured[1].items():
                    peers[way].append(taken_s)
        return Sides(statistics.median(ours), min(statistics.median(taken) for taken in peers.values()))

    async def after_silence(self, gap_s: float) -> Sides:
        await asyncio.sleep(gap_s)
        return Sides(await self.ours_s(GAP_SIZE), self.peer_s(GAP_SIZE, "transfer_sync_read"))


@contextmanager
def owner(folder: Path, sizes: list[int]) -> Iterator[dict[str, object]]:
    command = [sys.executable, "-m", "benchmarks.mooncake_peer", str(folder), *map(str, sizes)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


async def measure(gaps: tuple[int, ...]) -> tuple[dict[int, Sides], dict[int, Sides]]:
    sizes = list(ROUNDS)
    with tempfile.TemporaryDirectory() as folder, owner(Path(folder), sizes) as told:
        ours, _ = connectors("", pool_mib=2 * max(sizes) // MIB + 64)
        await ours.open()
        pair = Pair(ours, RawEngine(max(sizes)), told, sizes)
        by_size = {size: await pair.compare(size, rounds) for size, rounds in ROUNDS.items()}
        by_gap = {gap_s: await pair.after_silence(gap_s) for gap_s in gaps}
        await ours.close()
    return by_size, by_gap


def show(by_size: dict[int, Sides], by_gap: dict[int, Sides]) -> None:
    print(f"{'payload':>10} {'ours ms':>9} {'peer ms':>9} {'ratio':>6} {'ours GB/s':>9}")
    for size, sides in by_size.items():
        speed = size / sides.ours / 1e9
        print(f"{NAMES[size]:>10} {sides.ours * 1e3:>9.2f} {sides.peer * 1e3:>9.2f} {sides.ratio:>6.2f} {speed:>9.2f}")
    for gap_s, sides in by_gap.items():
        print(f"after {gap_s} s of silence: ours {sides.ours * 1e3:.1f} ms, peer {sides.peer * 1e3:.1f} ms")


def record(by_size: dict[int, Sides], by_gap: dict[int, Sides]) -> None:
    for size, sides in by_size.items():
        ours_ms, peer_ms = round(sides.ours * 1e3, 3), round(sides.peer * 1e3, 3)
        write_entry(f"mooncake_te.{NAMES[size]}.ms", ours_ms, "ms", command=COMMAND, peer=(PEER, peer_ms))
    write_entry("mooncake_te.ratio_vs_raw", round(by_size[HEADLINE].ratio, 3), "×", command=COMMAND, peer=(PEER, 1.0))
    for gap_s, sides in by_gap.items():
        ours_ms, peer_ms = round(sides.ours * 1e3, 1), round(sides.peer * 1e3, 1)
        write_entry(f"mooncake_te.after_{gap_s}_s.ms", ours_ms, "ms", command=COMMAND, peer=(PEER, peer_ms))


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--no-gaps", action="store_true", help="leave out the two minutes of silences")
    parser.add_argument("--dry-run", action="store_true", help="show the figures without writing them into the ledger")
    arguments = parser.parse_args()
    by_size, by_gap = asyncio.run(measure(() if arguments.no_gaps else GAPS_S))
    show(by_size, by_gap)
    if not arguments.dry_run:
        record(by_size, by_gap)
    return 0


if __name__ == "__main__":
    sys.exit(main())
