"""Our side of `benchmarks.shm`: connector `shm` in two processes, with the release of every payload to its owner."""

import asyncio
import gc
import sys
import tempfile
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import uvloop

from benchmarks.shm_pair import Arrival, Pipe, Sources, consumer, now_s, say, say_transfer, total, transfer_of
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


class Inbox:
    """The messages of a pipe, for an event loop that does other things meanwhile."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        asyncio.get_running_loop().add_reader(pipe.fileno(), self._take)

    async def next(self) -> Any:
        """None when the other side has ended."""
        return await self._messages.get()

    def _take(self) -> None:
        try:
            self._messages.put_nowait(self._pipe.recv())
        except EOFError:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._messages.put_nowait(None)


def freeze() -> None:
    """As a worker does once it has loaded."""
    gc.collect()
    gc.freeze()


async def read_all(hears: Pipe, answers: Pipe) -> None:
    connectors = ConnectorSet("", "consumer", PayloadStore(LIMIT_BYTES), [SETTINGS])
    await connectors.open()
    freeze()
    inbox = Inbox(hears)
    while (told := await inbox.next()) is not None:
        heard_s = now_s()
        handle = Handle.FromString(told)
        payload = await connectors.get(handle, PATIENCE_S)
        array = payload["data"]
        assert isinstance(array, Array)
        found = total(np.frombuffer(array.data, np.uint8))
        answers.send(Arrival(heard_s, now_s(), found))
        del payload, array
        await connectors.release(handle)
    await connectors.close()


def consume(hears: Pipe, answers: Pipe) -> None:
    uvloop.run(read_all(hears, answers))


async def sizes() -> asyncio.StreamReader:
    """One a line."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def send_all(connectors: ConnectorSet, tells: Pipe, answers: Pipe) -> None:
    connector, inbox, sources = connectors.connector("shm"), Inbox(answers), Sources()
    lines = await sizes()
    freeze()
    say("ready")
    while line := await lines.readline():
        data, expected = sources.of(int(line))
        began_s = now_s()
        payload = {"data": Array("uint8", data.shape, memoryview(data))}
        handle = await connector.put("r-1", "thinker->talker", payload, PATIENCE_S)
        put_s = now_s()
        tells.send(handle.SerializeToString())
        say_transfer(transfer_of(began_s, put_s, expected, await inbox.next()))


async def produce(folder: Path, tells: Pipe, answers: Pipe) -> None:
    address = f"unix:{folder}/producer.sock"
    store = PayloadStore(LIMIT_BYTES)
    connectors = ConnectorSet(address, BOOT, store, [SETTINGS], ["shm"])
    await connectors.open()
    server = grpc.aio.server()
    add_StageWorkerServicer_to_server(PayloadServicer(store, BOOT), server)
    server.add_insecure_port(address)
    await server.start()
    await send_all(connectors, tells, answers)
    tells.close()
    await connectors.close()
    await server.stop(None)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="omni-shm-") as folder, consumer(consume) as (tells, answers):
        uvloop.run(produce(Path(folder), tells, answers))


if __name__ == "__main__":
    main()
