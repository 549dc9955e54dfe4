"""A peer of `benchmarks.shm`: vLLM-Omni's SharedMemoryConnector. Runs in an environment of its own.

As vLLM-Omni uses it: torch tensors, the metadata of `put` go to the consumer, `get` is tried until it has something.
"""

import itertools
import json
import subprocess
import sys
from typing import Any

import torch
from vllm_omni.distributed.omni_connectors.connectors.shm_connector import SharedMemoryConnector

from benchmarks.shm_pair import MARK, Bytes, got, heard, produce, say

CONSUME = "consume"


def consume(connector: Any) -> None:
    def get(told: Any) -> Bytes:
        key, metadata = told
        while (result := connector.get("thinker", "talker", key, metadata)) is None:
            pass
        data: Bytes = result[0].numpy()
        return data

    while True:
        say(got(get, heard(sys.stdin)))


def main(connector: Any) -> None:
    command = (sys.executable, "-m", "benchmarks.shm_vllm_omni", CONSUME)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as consumer:
        assert consumer.stdin and consumer.stdout
        to_consumer, from_consumer = consumer.stdin, consumer.stdout
        keys = itertools.count()

        def put(data: Bytes) -> Any:
            key = f"omni-bench-{next(keys)}"
            is_put, _, metadata = connector.put("thinker", "talker", key, torch.from_numpy(data))
            if not is_put:
                raise SystemExit("SharedMemoryConnector.put failed")
            return key, metadata

        def ask(told: Any) -> dict[str, Any]:
            print(MARK + json.dumps(told), file=to_consumer, flush=True)
            answer: dict[str, Any] = heard(from_consumer)
            return answer

        say("ready")
        produce(put, ask)
        consumer.terminate()
    connector.close()


if __name__ == "__main__":
    if sys.argv[1:] == [CONSUME]:
        consume(SharedMemoryConnector({}))
    else:
        main(SharedMemoryConnector({}))
