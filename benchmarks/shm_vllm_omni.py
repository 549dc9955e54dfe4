"""A peer of `benchmarks.shm`: vLLM-Omni's SharedMemoryConnector. Runs in an environment of its own.

As vLLM-Omni uses it: torch tensors, the metadata of `put` go to the consumer, `get` is tried until it has something.
"""

import itertools
from typing import Any

import torch
from vllm_omni.distributed.omni_connectors.connectors.shm_connector import SharedMemoryConnector

from benchmarks.shm_pair import Bytes, Pipe, consume_with, consumer, produce


def consume(hears: Pipe, answers: Pipe) -> None:
    connector = SharedMemoryConnector({})

    def get(told: Any) -> Bytes:
        key, metadata = told
        while (result := connector.get("thinker", "talker", key, metadata)) is None:
            pass
        data: Bytes = result[0].numpy()
        return data

    consume_with(get, hears, answers)


def main() -> None:
    connector = SharedMemoryConnector({})
    keys = itertools.count()

    def put(data: Bytes) -> Any:
        key = f"omni-bench-{next(keys)}"
        is_put, _, metadata = connector.put("thinker", "talker", key, torch.from_numpy(data))
        if not is_put:
            raise SystemExit("SharedMemoryConnector.put failed")
        return key, metadata

    with consumer(consume) as (tells, answers):
        produce(put, tells, answers)
    connector.close()


if __name__ == "__main__":
    main()
