"""A pipe of messages between a frontend and a worker: what requests travel over, beside the calls of gRPC.

It knows nothing of who may use it and whether the other side still lives: the call that it belongs to does. A message
is its length in four bytes, then its bytes.
"""

import asyncio
import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Self, TypeAlias, cast

MESSAGE_LIMIT_BYTES = 16 * 2**20
"""Of every message of the internal plane, over pipes and over gRPC."""
LARGEST_INPUT_BYTES = 256 * 2**20
"""Of one request's own input, which takes several messages if it is large."""
LENGTH = struct.Struct(">I")
MOST_UNREAD_BYTES = 4 * 2**20
"""What waits for its reader here; with more, the other side is not read any further."""
MOST_UNSENT_BYTES = 4 * 2**20
"""What waits for the other side to read; with more, writers wait."""
UNIX = "unix"
GREETING_S = 5.0
SILENCE_S = 20


class PipeBrokenError(Exception):
    """The other side is gone, or does not keep to the form."""


class Pipe(asyncio.Protocol):
    """One end. Iterating gives what the other end writes, until that is closed; PipeBrokenError if it breaks.

    A reader that seldom waits has it handed over instead, which spares each message a turn of the loop.
    `greeted` gets the first message of an end that was taken and not opened; it has to come soon.
    """

    def __init__(self, greeted: "Greeted | None" = None) -> None:
        self._greeted = greeted
        self._patience: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport
        self._received = bytearray()
        self._messages: deque[bytes] = deque()
        self._unread_bytes = 0
        self._is_paused = False
        self._end: PipeBrokenError | StopAsyncIteration | None = None
        self._reader: asyncio.Future[None] | None = None
        """Who waits for the next message, or for the end."""
        self._receive: Callable[[bytes], None] | None = None
        self._is_held = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._messages:
            await self._change()
        message = self._messages.popleft()
        self._unread_bytes -= len(message)
        self._read_on()
        return message

    async def hand_over(self, receive: Callable[[bytes], None]) -> None:
        """Calls it with each message as it comes, until the pipe is closed; raises PipeBrokenError if it breaks."""
        self._receive = receive
        self._deliver()
        try:
            with suppress(StopAsyncIteration):
                while True:
                    await self._change()
        finally:
            self._receive = None

    def hold(self) -> None:
        """Keeps back what comes from here on: up to a bound here, then at the other end."""
        self._is_held = True

    def go_on(self) -> None:
        """Hands over what was kept back."""
        if self._is_held:
            self._is_held = False
            self._deliver()
            if self._end is not None:
                self._wake()

    async def _change(self) -> None:
        """Waits until there are messages; raises the end, which comes behind the last of them."""
        if self._end is not None and not self._messages:
            raise self._end
        self._reader = asyncio.get_running_loop().create_future()
        await self._reader

    async def write(self, message: bytes) -> None:
        """Waits while the other side does not read. Once the pipe has ended nothing is sent: its reader is told."""
        if not self._writable.is_set():
            await self._writable.wait()
        if self._end is None:
            self._transport.writelines((LENGTH.pack(len(message)), message))

    async def close(self, patience_s: float) -> None:
        """Returns once all that was written has left, or the time is up."""
        if not self._closed.is_set():
            self._transport.close()
        try:
            async with asyncio.timeout(patience_s):
                await self._closed.wait()
        except TimeoutError:
            self._transport.abort()

    def break_off(self, reason: str) -> None:
        """At once: what was not read or sent is lost."""
        self._messages.clear()
        self._finish(PipeBrokenError(reason))
        if not self._closed.is_set():
            self._transport.abort()

    # -- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop has transports of its own, which behave alike.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=MOST_UNSENT_BYTES)
        _notice_silence(transport.get_extra_info("socket"))
        if self._greeted is not None:
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(GREETING_S, self.break_off, "it did not say what it is for")

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (message := self._next()) is not None:
            self._messages.append(message)
            self._unread_bytes += len(message)
        if self._messages and self._greeted is not None:
            self._greet(self._greeted)
        if self._messages:
            self._deliver()
        if self._unread_bytes > MOST_UNREAD_BYTES and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def _deliver(self) -> None:
        if self._receive is None:
            self._wake()
            return
        while self._messages and not self._is_held:
            message = self._messages.popleft()
            self._unread_bytes -= len(message)
            self._receive(message)
        self._read_on()

    def _read_on(self) -> None:
        if self._is_paused and not self._messages:
            self._is_paused = False
            self._transport.resume_reading()

    def _greet(self, greeted: "Greeted") -> None:
        self._greeted = None
        assert self._patience is not None
        self._patience.cancel()
        greeting = self._messages.popleft()
        self._unread_bytes -= len(greeting)
        greeted(self, greeting)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        is_whole = exc is None and not self._received
        self._finish(StopAsyncIteration() if is_whole else PipeBrokenError(str(exc or "it ended inside a message")))
        self._closed.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _next(self) -> bytes | None:
        """The next message, if all of it is there."""
        if self._end is not None or len(self._received) < LENGTH.size:
            return None
        (size_bytes,) = LENGTH.unpack_from(self._received)
        if size_bytes > MESSAGE_LIMIT_BYTES:
            self.break_off(f"a message of {size_bytes:,} bytes was announced; the limit is {MESSAGE_LIMIT_BYTES:,}")
            return None
        end = LENGTH.size + size_bytes
        if len(self._received) < end:
            return None
        message = bytes(memoryview(self._received)[LENGTH.size : end])
        del self._received[:end]
        return message

    def _finish(self, end: PipeBrokenError | StopAsyncIteration) -> None:
        if self._end is None:
            self._end = end
        self._writable.set()
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


def _notice_silence(connection: socket.socket) -> None:
    """The kernel breaks a connection over a network that is gone, though nobody writes."""
    if connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * SILENCE_S)


Greeted: TypeAlias = Callable[[Pipe, bytes], None]


async def open_pipe(address: str, tls: ssl.SSLContext | None = None, name: str | None = None) -> Pipe:
    """To "HOST:PORT" or "unix:PATH", where a certificate made out to `name` must be shown; raises OSError."""
    loop = asyncio.get_running_loop()
    host, _, port = address.rpartition(":")
    if host == UNIX:
        _, pipe = await loop.create_unix_connection(Pipe, port, ssl=tls, server_hostname=name)
    else:
        _, pipe = await loop.create_connection(Pipe, host.strip("[]"), int(port), ssl=tls, server_hostname=name)
    return pipe


async def serve_pipes(address: str, greeted: Greeted, tls: ssl.SSLContext | None = None) -> asyncio.Server:
    """Raises OSError if nobody can listen on the address."""
    loop = asyncio.get_running_loop()
    host, _, port = address.rpartition(":")
    if host == UNIX:
        return await loop.create_unix_server(lambda: Pipe(greeted), port, ssl=tls)
    return await loop.create_server(lambda: Pipe(greeted), host.strip("[]"), int(port), ssl=tls)
