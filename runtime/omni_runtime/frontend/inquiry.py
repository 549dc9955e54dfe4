"""One HTTP request as sessions of the orchestrator: what all of them say alike, and how they end with it."""

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from omni_contract.wire.payload import Payload, Value
from omni_runtime.frontend.request_scope import RequestContext
from omni_runtime.orchestrator import Session, SessionRequest


def _nonce() -> str:
    return secrets.token_hex(8)


def _now() -> int:
    return int(time.time())


@dataclass(frozen=True)
class Inquiry:
    """`modalities` are those that each of its sessions is asked for."""

    context: RequestContext
    modalities: tuple[str, ...]
    priority: int | None = None
    affinity: str | None = None
    takes_what_is_left: bool = False
    nonce: str = field(default_factory=_nonce)
    """Clients may send one request id twice, so that alone would not tell two sessions apart."""
    created: int = field(default_factory=_now)

    def session(self, number: int, payload: Payload, parameters: Mapping[str, Value]) -> SessionRequest:
        return SessionRequest(
            request_id=f"{self.context.request_id}/{self.nonce}-{number}",
            payload=payload,
            parameters=parameters,
            modalities=self.modalities,
            traceparent=self.context.traceparent,
            tenant=self.context.tenant,
            priority=self.priority or 0,
            affinity=self.affinity or "",
            takes_what_is_left=self.takes_what_is_left,
        )


@dataclass(frozen=True, kw_only=True)
class RunningText:
    """An answer of the text stage whose sessions run, and what all of its chunks say."""

    id: str
    created: int
    model: str
    fingerprint: str
    text_stage: str
    seed: int
    """Of the first session; the others' follow."""
    sessions: Sequence[Session]


@contextmanager
def aborting(sessions: Sequence[Session]) -> Iterator[None]:
    """Sessions not read to their end when the block ends are aborted on every stage."""
    try:
        yield
    finally:
        for session in sessions:
            session.abort()
