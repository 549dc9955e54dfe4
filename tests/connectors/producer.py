"""The other process: owns payloads, serves Fetch and Release, and does what the test tells it, a line of JSON each.

It is forked by `nursery.py`.
"""

import argparse
import asyncio
import json
import os
import socket
from pathlib import Path
from typing import Any

import grpc

from omni_contract.api.v1alpha1 import ConnectorSpec
from omni_contract.wire.errors import TransferError
from omni_contract.wire.stage_pb2 import Handle
from omni_contract.wire.stage_pb2_grpc import add_StageWorkerServicer_to_server
from omni_runtime.connectors.channels import SERVER_OPTIONS
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.protocol import MemoryPlace
from omni_runtime.connectors.serving import PayloadServicer
from omni_runtime.connectors.store import PayloadStore
from tests.connectors import payloads

MAKERS = {
    "raw": payloads.raw,
    "every_dtype": payloads.every_dtype,
    "several": payloads.several,
    "of_encoded_size": payloads.of_encoded_size,
}


class Producer:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.store = PayloadStore(arguments.limit_bytes)
        specs = [ConnectorSpec.model_validate(entry) for entry in json.loads(arguments.specs)]
        memory = MemoryPlace(Path(arguments.memory), arguments.locality)
        self.connectors = ConnectorSet(
            arguments.listen, arguments.boot_id, self.store, specs, [arguments.connector], memory
        )
        self.connector = self.connectors.connector(arguments.connector)

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        try:
            return await getattr(self, f"do_{command.pop('do')}")(**command)
        except TransferError as error:
            return {"error": error.message}

    async def do_put(self, maker: str, arguments: list[Any], remaining_s: float) -> dict[str, Any]:
        handle = await self.connector.put("r-1", "a->b", MAKERS[maker](*arguments), remaining_s)
        return {"handle": handle.SerializeToString().hex()}

    async def do_put_all(self, maker: str, of: list[list[Any]], remaining_s: float) -> dict[str, Any]:
        puts = (self.connector.put("r-1", "a->b", MAKERS[maker](*one), remaining_s) for one in of)
        return {"handles": [handle.SerializeToString().hex() for handle in await asyncio.gather(*puts)]}

    async def do_open_stream(self, remaining_s: float) -> dict[str, Any]:
        handle = await self.connector.open_stream("r-1", "a->b", remaining_s)
        return {"handle": handle.SerializeToString().hex()}

    async def do_append(self, handle: str, sizes: list[int]) -> dict[str, Any]:
        for index, size_bytes in enumerate(sizes):
            await self.connector.append(Handle.FromString(bytes.fromhex(handle)), payloads.raw(size_bytes, index))
        return {}

    async def do_end_stream(self, handle: str) -> dict[str, Any]:
        await self.connector.end_stream(Handle.FromString(bytes.fromhex(handle)))
        return {}

    async def do_release(self, handle: str) -> dict[str, Any]:
        await self.connector.release(Handle.FromString(bytes.fromhex(handle)))
        return {}

    async def do_census(self) -> dict[str, Any]:
        census = self.connectors.census()
        return {"payloads": census.payloads, "size_bytes": census.size_bytes}

    async def do_wait_empty(self) -> dict[str, Any]:
        await self.connectors.wait_empty()
        return {}


async def main(arguments: argparse.Namespace, connection: socket.socket) -> None:
    producer = Producer(arguments)
    await producer.connectors.open()
    server = grpc.aio.server(options=SERVER_OPTIONS)
    add_StageWorkerServicer_to_server(PayloadServicer(producer.store, arguments.boot_id), server)
    server.add_insecure_port(arguments.listen)
    await server.start()
    commands, answers = await asyncio.open_unix_connection(sock=connection)
    write(answers, {"pid": os.getpid()})
    async with asyncio.TaskGroup() as tasks:
        while line := await commands.readline():
            tasks.create_task(answer(producer, json.loads(line), answers))
    await producer.connectors.close()
    await server.stop(None)


async def answer(producer: Producer, command: dict[str, Any], answers: asyncio.StreamWriter) -> None:
    """Commands run side by side, so that a blocked append does not block the census."""
    number = command.pop("number")
    write(answers, {"number": number, **await producer.do(command)})


def write(answers: asyncio.StreamWriter, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer).encode() + b"\n")


def run(words: list[str], connection: socket.socket) -> None:
    """Until the connection's other end is closed."""
    parser = argparse.ArgumentParser()
    for name in ("listen", "boot-id", "connector", "specs", "memory", "locality"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--limit-bytes", type=int, required=True)
    asyncio.run(main(parser.parse_args(words), connection))
