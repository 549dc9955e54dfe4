"""A certificate with its key and its authority, read from a folder as a mounted kubernetes.io/tls Secret gives it.

It is tried out before it is used: by a handshake of both of its roles, client and server, in memory. What is wrong with
it, be it the key, the chain, the date or the purpose, is then said by OpenSSL before any peer has to guess.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omni_contract.wire.names import TLS_AUTHORITY, TLS_CERTIFICATE, TLS_KEY
from omni_runtime.transport.protocol import TransportError

FLIGHTS = 4
"""More turns than any handshake of TLS 1.2 or 1.3 takes."""


@dataclass(frozen=True)
class Certificate:
    chain: bytes
    key: bytes
    authority: bytes
    names: tuple[str, ...]
    """The DNS names that it is made out to."""
    expires_s: float
    """Unix seconds."""
    dialing: ssl.SSLContext
    """For connections to others, whose names are checked."""
    serving: ssl.SSLContext


def read_certificate(folder: Path) -> Certificate:
    """Raises TransportError with the file at fault."""
    chain, key, authority = (_bytes(folder / name) for name in (TLS_CERTIFICATE, TLS_KEY, TLS_AUTHORITY))
    dialing, serving = _context(folder, ssl.PROTOCOL_TLS_CLIENT), _context(folder, ssl.PROTOCOL_TLS_SERVER)
    peer = _shake_hands(dialing, serving, folder)
    dialing.check_hostname = True
    return Certificate(
        chain=chain,
        key=key,
        authority=authority,
        names=tuple(value for kind, value in peer.get("subjectAltName", ()) if kind == "DNS"),
        expires_s=ssl.cert_time_to_seconds(peer["notAfter"]),
        dialing=dialing,
        serving=serving,
    )


def is_made_out_to(name: str, names: tuple[str, ...]) -> bool:
    """A name that begins with "*." stands for every name with one more part, as in all of TLS."""
    _, _, parent = name.partition(".")
    return name in names or f"*.{parent}" in names


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TransportError(f"{path}: {error.strerror}") from error


def _context(folder: Path, protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    _load_authorities(context, folder / TLS_AUTHORITY)
    try:
        # The empty password keeps OpenSSL from asking for one on the terminal.
        context.load_cert_chain(folder / TLS_CERTIFICATE, folder / TLS_KEY, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TransportError(f"{folder / TLS_KEY}: is not the key of {TLS_CERTIFICATE}") from error
        _load_authorities(ssl.SSLContext(protocol), folder / TLS_CERTIFICATE)
        raise TransportError(f"{folder / TLS_KEY}: holds no private key in PEM form, or an encrypted one") from error
    return context


def _load_authorities(context: ssl.SSLContext, path: Path) -> None:
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise TransportError(f"{path}: holds no certificate in PEM form") from error


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, folder: Path) -> dict[str, Any]:
    """The certificate as its peers will see it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    unfinished = [asking, answering]
    try:
        for _ in range(FLIGHTS):
            unfinished = [end for end in unfinished if not _is_done(end)]
    except ssl.SSLCertVerificationError as error:
        raise TransportError(f"{folder / TLS_CERTIFICATE}: {_advice(error.verify_message)}") from error
    except ssl.SSLError as error:
        raise TransportError(f"{folder / TLS_CERTIFICATE}: cannot be used for TLS: {error.reason}") from error
    return dict(asking.getpeercert() or {})


def _is_done(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _advice(verdict: str) -> str:
    match verdict:
        case "unsuitable certificate purpose":
            return f"{verdict}: it must be allowed for both server and client authentication"
        case "unable to get local issuer certificate" | "self-signed certificate":
            return f"{verdict}: it was not signed by {TLS_AUTHORITY}, or intermediate certificates are missing from it"
        case _:
            return verdict
