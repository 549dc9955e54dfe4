"""Forwards loopback ports of the host into the network namespace of another process; run as a program of its own.

A socket stays in the namespace it was made in: so listen first, then enter the namespace, then serve. Ends with the
process whose namespace it is.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

CLONE_NEWNET = 0x40000000
CHUNK_BYTES = 1 << 16


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until one side closes; a half-closed connection goes on in the other direction."""
    try:
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()


async def serve(listener: socket.socket) -> asyncio.Server:
    """Connect each client to the same port inside the namespace."""
    port = listener.getsockname()[1]

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))
        inner_writer.close()
        writer.close()

    return await asyncio.start_server(connected, sock=listener)


def listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    return listener


def enter_network_namespace(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{pid}/ns/net").open() as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the network namespace of process {pid}")


async def forward(pid: int, ports: Sequence[int]) -> None:
    listeners = [listen(port) for port in ports]
    enter_network_namespace(pid)
    servers = [await serve(listener) for listener in listeners]
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(os.pidfd_open(pid), ended.set)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    print("forwarding", *ports, flush=True)
    await ended.wait()
    for server in servers:
        server.close()


if __name__ == "__main__":
    asyncio.run(forward(int(sys.argv[1]), [int(port) for port in sys.argv[2:]]))
