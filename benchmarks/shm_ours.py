"""Our side of `benchmarks.shm`: connector `shm` in two processes, with the release of every payload to its owner."""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import grpc
import numpy as np
import uvloop

from benchmarks.shm_pair import MARK, Bytes, say, source, total
from omni_contract.api.v1alpha1 import ConnectorSpec
from omni_contract.wire.payload import Array
from omni_contract.wire.stage_pb2 import Handle
from omni_contract.wire.stage_pb2_grpc import add_StageWorkerServicer_to_server
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.serving import PayloadServicer
from omni_runtime.connectors.store import PayloadStore

SETTINGS = ConnectorSpec.model_validate({"name": "shm", "shm": {"size": "640Mi"}})
LIMIT_BYTES = 2**30
PATIENCE_S = 60.0
BOOT = "boot"


async def lines_of_stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def consume() -> None:
    connectors = ConnectorSet("", "consumer", PayloadStore(LIMIT_BYTES), [SETTINGS])
    await connectors.open()
    lines = await lines_of_stdin()
    while line := await lines.readline():
        handle = Handle.FromString(bytes.fromhex(line.decode()))
        began_s = time.perf_counter()
        payload = await connectors.get(handle, PATIENCE_S)
        array = payload["data"]
        assert isinstance(array, Array)
        read = total(np.frombuffer(array.data, np.uint8))
        say({"get_s": time.perf_counter() - began_s, "total": read})
        del payload, array
        await connectors.release(handle)
    await connectors.close()


class Producer:
    """One transfer at a time."""

    def __init__(self, connectors: ConnectorSet, consumer: asyncio.subprocess.Process) -> None:
        assert consumer.stdin and consumer.stdout
        self._connector = connectors.connector("shm")
        self._to_consumer, self._from_consumer = consumer.stdin, consumer.stdout
        self._sources: dict[int, tuple[Bytes, int]] = {}

    async def transfer(self, size_bytes: int) -> dict[str, float]:
        data, expected = self._source(size_bytes)
        payload = {"data": Array("uint8", (size_bytes,), memoryview(data))}
        began_s = time.perf_counter()
        handle = await self._connector.put("r-1", "thinker->talker", payload, PATIENCE_S)
        put_s = time.perf_counter() - began_s
        self._to_consumer.write(handle.SerializeToString().hex().encode() + b"\n")
        answer = json.loads((await self._from_consumer.readline()).decode().removeprefix(MARK))
        end_s = time.perf_counter() - began_s
        if answer["total"] != expected:
            raise SystemExit(f"{size_bytes} bytes did not arrive unchanged")
        return {"put_s": put_s, "get_s": answer["get_s"], "end_s": end_s}

    def _source(self, size_bytes: int) -> tuple[Bytes, int]:
        if size_bytes not in self._sources:
            data = source(size_bytes)
            self._sources[size_bytes] = data, total(data)
        return self._sources[size_bytes]


async def produce(folder: Path) -> None:
    address = f"unix:{folder}/producer.sock"
    store = PayloadStore(LIMIT_BYTES)
    connectors = ConnectorSet(address, BOOT, store, [SETTINGS], ["shm"])
    await connectors.open()
    server = grpc.aio.server()
    add_StageWorkerServicer_to_server(PayloadServicer(store, BOOT), server)
    server.add_insecure_port(address)
    await server.start()
    consumer = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.shm_ours", "--consume"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    producer = Producer(connectors, consumer)
    lines = await lines_of_stdin()
    say("ready")
    while line := await lines.readline():
        say(await producer.transfer(int(line)))
    assert consumer.stdin
    consumer.stdin.close()
    await consumer.wait()
    await connectors.close()
    await server.stop(None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--consume", action="store_true")
    if parser.parse_args().consume:
        uvloop.run(consume())
        return
    with tempfile.TemporaryDirectory(prefix="omni-shm-") as folder:
        uvloop.run(produce(Path(folder)))


if __name__ == "__main__":
    main()
