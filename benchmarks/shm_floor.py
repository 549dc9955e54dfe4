"""The floor of `benchmarks.shm`: what nobody can do without, a copy into memory that both see, and a pipe's wake-up."""

import mmap
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.shm_pair import Bytes, Pipe, consume_with, consumer, produce

SIZE_BYTES = 256 * 2**20


def shared(path: str) -> Bytes:
    with Path(path).open("r+b") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), SIZE_BYTES), np.uint8)


def consume(hears: Pipe, answers: Pipe, path: str) -> None:
    memory = shared(path)
    consume_with(lambda size_bytes: memory[:size_bytes], hears, answers)


def main() -> None:
    with tempfile.NamedTemporaryFile(dir=Path("/dev/shm")) as file:
        file.truncate(SIZE_BYTES)
        memory = shared(file.name)

        def put(data: Bytes) -> int:
            memory[: data.size] = data
            return data.size

        with consumer(consume, file.name) as (tells, answers):
            produce(put, tells, answers)


if __name__ == "__main__":
    main()
