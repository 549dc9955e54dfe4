"""API keys from a folder, as a mounted Secret gives it: one or more keys in each file, rotated without a restart."""

import hmac
import os
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.frontend.errors import error_response
from omni_runtime.frontend.request_scope import note_tenant

Fingerprint: TypeAlias = tuple[tuple[str, int, int, int], ...]


class ApiKeys:
    """The keys that the folder holds now. An empty or missing folder lets nobody in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fingerprint: Fingerprint | None = None
        self._digests: tuple[bytes, ...] = ()

    def tenant(self, key: str) -> str | None:
        """A name for who has the key, None if nobody has; it does not give the key away.

        Compares with every key, so that the time taken tells nothing.
        """
        self._refresh()
        digest = _digest(key)
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        return digest.hex()[:12] if any(matches) else None

    def _refresh(self) -> None:
        try:
            fingerprint = _fingerprint(self._folder)
            if fingerprint != self._fingerprint:
                self._digests = tuple(_digest(key) for name, *_ in fingerprint for key in _keys(self._folder / name))
                self._fingerprint = fingerprint
        except FileNotFoundError:
            # The kubelet swaps the folder's link: the next request sees either the old or the new state.
            self._fingerprint, self._digests = None, ()


class RequireApiKey:
    """Refuses requests to the given paths without a known `Authorization: Bearer` key."""

    def __init__(self, app: ASGIApp, keys: ApiKeys, prefixes: tuple[str, ...]) -> None:
        self._app = app
        self._keys = keys
        self._prefixes = prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(self._prefixes):
            key = _bearer(Headers(scope=scope).get("authorization", ""))
            tenant = self._keys.tenant(key)
            if tenant is None:
                text = "wrong API key" if key else 'no API key: send the header "Authorization: Bearer KEY"'
                await error_response(OmniError(ErrorCode.UNAUTHENTICATED, text))(scope, receive, send)
                return
            note_tenant(scope, tenant)
        await self._app(scope, receive, send)


def _bearer(header: str) -> str:
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _fingerprint(folder: Path) -> Fingerprint:
    """Changes whenever a file does. Names that begin with a dot are the kubelet's own."""
    with os.scandir(folder) as entries:
        files = [(entry.name, entry.stat()) for entry in entries if not entry.name.startswith(".")]
    return tuple(sorted((name, stat.st_ino, stat.st_mtime_ns, stat.st_size) for name, stat in files))


def _keys(file: Path) -> list[str]:
    return [line.strip() for line in file.read_text().splitlines() if line.strip()]


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()
