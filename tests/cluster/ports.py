"""Loopback ports: which are free, and the error that names one that is not."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from tests.cluster.errors import PortTaken


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def require_free(ports: Iterable[int]) -> None:
    for port in ports:
        if not is_free(port):
            raise PortTaken(port)
