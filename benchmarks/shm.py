"""What a payload costs from one process to another on the same host: `python -m benchmarks.shm`.

The consumer reads every byte, with us and with the peers: vLLM-Omni's SharedMemoryConnector, in an environment of its
own that is made at the first run (several GiB), and a multiprocessing queue. All take turns, some transfers each, and
all tell their consumer of a payload through the same kind of pipe. `shm.64KiB.us` is put and get; the other figures are
end to end: from the put's beginning until the last byte is read, with the consumer's wake-up. The floor is what nobody
can do without: one copy into shared memory, and the pipe. Ours releases every payload to its owner, over gRPC, as in
production.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.ledger import write_entry
from benchmarks.plot import log_plot
from benchmarks.shm_environment import PEER, EnvironmentFailed, cache_folder, peer_python
from benchmarks.shm_pair import Transfer, heard

ROOT = Path(__file__).parents[1]
PLOT = ROOT / "docs" / "images" / "shm.svg"
COMMAND = "python -m benchmarks.shm"
KIB, MIB = 2**10, 2**20
ROUNDS = 5
BURSTS = {64 * KIB: 100, MIB: 20, 16 * MIB: 5, 256 * MIB: 2}
"""Transfers in a row, by size; one more before them warms up."""
LABELS = {64 * KIB: "64 KiB", MIB: "1 MiB", 16 * MIB: "16 MiB", 256 * MIB: "256 MiB"}
OURS = "ours: shm"
VLLM_OMNI = "vLLM-Omni SharedMemory"
QUEUE = "multiprocessing queue"
FLOOR = "floor: a copy and a pipe"
FLOOR_PEER = "nothing but a copy into shared memory, a pipe's wake-up and the reading"


class Contender:
    """A producing process, which has its consumer."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin and process.stdout
        self._commands, self._answers = process.stdin, process.stdout
        heard(self._answers)

    def transfer(self, size_bytes: int) -> Transfer:
        print(size_bytes, file=self._commands, flush=True)
        return Transfer(**heard(self._answers))


@contextmanager
def contender(python: str, module: str) -> Iterator[Contender]:
    command = (python, "-m", f"benchmarks.{module}")
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield Contender(process)
        assert process.stdin
        process.stdin.close()


def measured(contenders: Mapping[str, Contender], size_bytes: int, burst: int) -> dict[str, list[Transfer]]:
    taken: dict[str, list[Transfer]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, one in contenders.items():
            one.transfer(size_bytes)
            taken[name] += [one.transfer(size_bytes) for _ in range(burst)]
    return taken


def median_of(transfers: Sequence[Transfer]) -> Transfer:
    return Transfer(
        *(statistics.median(getattr(one, part) for one in transfers) for part in ("put_s", "get_s", "end_s"))
    )


def show(size_bytes: int, medians: Mapping[str, Transfer]) -> None:
    for name, one in medians.items():
        speed = size_bytes / one.end_s / 1e9
        parts = f"put {one.put_s * 1e3:9.3f} ms, get {one.get_s * 1e3:9.3f} ms, end to end {one.end_s * 1e3:9.3f} ms"
        print(f"{LABELS[size_bytes]:>8} {name:<25} {parts} ({speed:5.2f} GB/s)", flush=True)


def record(all_medians: Mapping[int, Mapping[str, Transfer]]) -> None:
    small = all_medians[64 * KIB]
    ours_us, peer_us = (round((one.put_s + one.get_s) * 1e6, 1) for one in (small[OURS], small[VLLM_OMNI]))
    write_entry("shm.64KiB.us", ours_us, "µs", command=COMMAND, peer=(f"{PEER} SharedMemoryConnector", peer_us))
    ours_us, floor_us = (round(one.end_s * 1e6, 1) for one in (small[OURS], small[FLOOR]))
    write_entry("shm.64KiB.end_to_end_us", ours_us, "µs", command=COMMAND, peer=(FLOOR_PEER, floor_us))
    for size_bytes, label in ((16 * MIB, "16MiB"), (256 * MIB, "256MiB")):
        medians = all_medians[size_bytes]
        ratio = round(medians[VLLM_OMNI].end_s / medians[OURS].end_s, 2)
        write_entry(f"shm.{label}.ratio_vs_vllm_omni", ratio, "times as fast", command=COMMAND)
    lines = {
        name: [(size_bytes, medians[name].end_s * 1e3) for size_bytes, medians in all_medians.items()]
        for name in (OURS, VLLM_OMNI, QUEUE, FLOOR)
    }
    title = "One payload between two processes, every byte read"
    PLOT.write_text(log_plot(title, ("size of the payload", "milliseconds, end to end"), LABELS, lines))


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="do not write the ledger and the plot")
    arguments = parser.parse_args()
    try:
        peer = str(peer_python(cache_folder()))
    except EnvironmentFailed as error:
        print(error, file=sys.stderr)
        return 1
    programs = {
        OURS: (sys.executable, "shm_ours"),
        VLLM_OMNI: (peer, "shm_vllm_omni"),
        QUEUE: (sys.executable, "shm_queue"),
        FLOOR: (sys.executable, "shm_floor"),
    }
    all_medians: dict[int, dict[str, Transfer]] = {}
    with ExitStack() as running:
        contenders = {name: running.enter_context(contender(*program)) for name, program in programs.items()}
        for size_bytes, burst in BURSTS.items():
            taken = measured(contenders, size_bytes, burst)
            all_medians[size_bytes] = {name: median_of(transfers) for name, transfers in taken.items()}
            show(size_bytes, all_medians[size_bytes])
    if not arguments.dry_run:
        record(all_medians)
    return 0


if __name__ == "__main__":
    sys.exit(main())
