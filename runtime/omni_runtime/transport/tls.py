"""Mutual TLS from a folder that is read again when its files change: a rotated certificate restarts nothing."""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from threading import Lock
from typing import TypeAlias

import grpc

from omni_contract.wire.names import TLS_AUTHORITY, TLS_CERTIFICATE, TLS_KEY, certificate_name
from omni_runtime.transport.callers import KnownCallers
from omni_runtime.transport.certificate import Certificate, is_made_out_to, read_certificate
from omni_runtime.transport.pipe import Greeted, Pipe, open_pipe, serve_pipes
from omni_runtime.transport.protocol import ChannelOptions, TransportError

logger = logging.getLogger(__name__)

Fingerprint: TypeAlias = tuple[tuple[int, int, int], ...]

TRY_AGAIN_S = 30.0
"""Files that could not be used are read again though they are the same: a certificate may not be valid yet."""


class TlsTransport:
    """Of one component of one model: a stage, or the frontend. Raises TransportError if its certificate cannot be used.

    gRPC asks for the certificate on threads of its own.
    """

    def __init__(
        self, folder: Path, component: str, model: str, namespace: str, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._now_s = now_s
        self.component = component
        self._name_of = partial(certificate_name, model=model, namespace=namespace)
        self._name = self._name_of(component)
        self._lock = Lock()
        self._fingerprint, self._certificate = self._read()
        self._failure = ""
        self._try_again_at_s = inf
        self._edition = 1
        self._served_edition = 1
        self.interceptors: Sequence[grpc.aio.ServerInterceptor] = (KnownCallers(model, namespace),)
        self._tell("uses")

    @property
    def edition(self) -> int:
        self._refresh()
        return self._edition

    @property
    def expires_s(self) -> float:
        """Of the certificate in use, in Unix seconds."""
        self._refresh()
        return self._certificate.expires_s

    def channel(self, address: str, stage: str, options: ChannelOptions) -> grpc.aio.Channel:
        self._refresh()
        own = self._certificate
        credentials = grpc.ssl_channel_credentials(own.authority, own.key, own.chain)
        expected = ("grpc.ssl_target_name_override", self._name_of(stage))
        return grpc.aio.secure_channel(address, credentials, options=(*options, expected))

    def bind(self, server: grpc.aio.Server, address: str) -> None:
        credentials = grpc.dynamic_ssl_server_credentials(
            _for_servers(self._certificate), self._newer_for_servers, require_client_authentication=True
        )
        server.add_secure_port(address, credentials)

    def explain(self, error: grpc.aio.AioRpcError, stage: str) -> str | None:
        words = error.details() or ""
        if error.code() is grpc.StatusCode.PERMISSION_DENIED:
            return f"it refuses our certificate: {words}"
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            return None
        if "Hostname Verification Check failed" in words:
            return f"its certificate is not made out to {self._name_of(stage)}"
        if "CERTIFICATE_VERIFY_FAILED" in words:
            verdict = words.partition("CERTIFICATE_VERIFY_FAILED: ")[2].partition(":")[0]
            return f"its certificate is refused: {verdict}"
        if "WRONG_VERSION_NUMBER" in words:
            return "it does not speak TLS"
        if "Socket closed" in words or "Connection reset" in words:
            return "it closed the connection; if it does so each time, it refuses our certificate, and its log says why"
        return None

    async def open_pipe(self, address: str, stage: str) -> Pipe:
        self._refresh()
        return await open_pipe(address, self._certificate.dialing, self._name_of(stage))

    async def serve_pipes(self, address: str, greeted: Greeted) -> asyncio.Server:
        first = self._certificate.serving
        # OpenSSL asks in the middle of each handshake, so that each is done with the newest certificate.
        first.sni_callback = self._use_newest
        return await serve_pipes(address, greeted, first)

    def _use_newest(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        self._refresh()
        connection.context = self._certificate.serving

    def _newer_for_servers(self) -> grpc.ServerCertificateConfiguration | None:
        """gRPC asks before each handshake; None keeps what it has."""
        edition = self.edition
        if edition == self._served_edition:
            return None
        self._served_edition = edition
        return _for_servers(self._certificate)

    def _refresh(self) -> None:
        """Goes on with the last certificate while the files on disk cannot be used."""
        with self._lock:
            seen = _fingerprint(self._folder)
            if seen == self._fingerprint and self._now_s() < self._try_again_at_s:
                return
            try:
                self._fingerprint, self._certificate = self._read()
            except TransportError as error:
                self._fingerprint = seen
                self._failed(str(error))
                return
            self._failure, self._try_again_at_s = "", inf
            self._edition += 1
            self._tell("goes on with a new")

    def _failed(self, reason: str) -> None:
        self._try_again_at_s = self._now_s() + TRY_AGAIN_S
        if reason != self._failure:
            self._failure = reason
            logger.error("the new certificate cannot be used, going on with the last: %s", reason)

    def _read(self) -> tuple[Fingerprint, Certificate]:
        """A state of the files that did not change while they were read."""
        while True:
            before = _fingerprint(self._folder)
            certificate = read_certificate(self._folder)
            if before == _fingerprint(self._folder):
                break
        if not is_made_out_to(self._name, certificate.names):
            names = ", ".join(certificate.names) or "no DNS names"
            raise TransportError(f"{self._folder / TLS_CERTIFICATE}: is made out to {names}, and not to {self._name}")
        return before, certificate

    def _tell(self, event: str) -> None:
        expires = datetime.fromtimestamp(self._certificate.expires_s, UTC)
        logger.info("%s %s certificate for %s that expires on %s", self._folder, event, self._name, f"{expires:%F}")


def _for_servers(certificate: Certificate) -> grpc.ServerCertificateConfiguration:
    pair = (certificate.key, certificate.chain)
    return grpc.ssl_server_certificate_configuration([pair], root_certificates=certificate.authority)


def _fingerprint(folder: Path) -> Fingerprint:
    """Changes whenever a file does, the kubelet's swap of a link included; empty parts stand for missing files."""
    return tuple(_mark(folder / name) for name in (TLS_CERTIFICATE, TLS_KEY, TLS_AUTHORITY))


def _mark(path: Path) -> tuple[int, int, int]:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return (0, 0, 0)
    return (stat.st_ino, stat.st_mtime_ns, stat.st_size)
