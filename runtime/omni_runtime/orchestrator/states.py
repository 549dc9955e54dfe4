"""The life of a request as two tables: the session's, and that of each of its stages.

Every rule about retries and terminal events is a row here; `session.py` only carries out what a row says.
"""

from collections.abc import Mapping
from enum import StrEnum


class SessionState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    """As running, but the one retry is used up."""
    ANSWERING = "answering"
    """Something has gone to the client, so nothing may run again."""
    DONE = "done"
    FAILED = "failed"
    ABORTED = "aborted"


class SessionEventKind(StrEnum):
    ACCEPTED = "accepted"
    """A worker took a stage."""
    LOST = "lost"
    """Work that a worker had accepted is gone, and another replica may succeed."""
    ANSWERED = "answered"
    """A final output went to the caller."""
    COMPLETED = "completed"
    """Every stage has finished and every output has been read."""
    REFUSED = "refused"
    """It failed in a way that no replica can mend."""
    EXPIRED = "expired"
    CANCELLED = "cancelled"


_S, _E = SessionState, SessionEventKind
_ENDINGS = {_E.REFUSED: _S.FAILED, _E.EXPIRED: _S.FAILED, _E.CANCELLED: _S.ABORTED}

SESSION: Mapping[SessionState, Mapping[SessionEventKind, SessionState]] = {
    _S.QUEUED: {_E.ACCEPTED: _S.RUNNING, **_ENDINGS},
    _S.RUNNING: {
        _E.ACCEPTED: _S.RUNNING,
        _E.LOST: _S.RETRYING,
        _E.ANSWERED: _S.ANSWERING,
        _E.COMPLETED: _S.DONE,
        **_ENDINGS,
    },
    _S.RETRYING: {
        _E.ACCEPTED: _S.RETRYING,
        _E.LOST: _S.FAILED,
        _E.ANSWERED: _S.ANSWERING,
        _E.COMPLETED: _S.DONE,
        **_ENDINGS,
    },
    _S.ANSWERING: {
        _E.ACCEPTED: _S.ANSWERING,
        _E.LOST: _S.FAILED,
        _E.ANSWERED: _S.ANSWERING,
        _E.COMPLETED: _S.DONE,
        **_ENDINGS,
    },
    _S.DONE: {},
    _S.FAILED: {},
    _S.ABORTED: {},
}

TERMINAL = frozenset(state for state, row in SESSION.items() if not row)


class StageState(StrEnum):
    WAITING = "waiting"
    """Inputs are missing."""
    QUEUED = "queued"
    """Wants a replica."""
    SENT = "sent"
    RUNNING = "running"
    FINISHED = "finished"


class StageEventKind(StrEnum):
    FED = "fed"
    """All inputs are there."""
    ASSIGNED = "assigned"
    BOUNCED = "bounced"
    """The replica was lost or full before it took the stage: no work is lost, so no retry is spent."""
    ACCEPTED = "accepted"
    FINISHED = "finished"
    RESTARTED = "restarted"
    DROPPED = "dropped"
    """The request goes on without what the stage makes."""


_T, _F = StageState, StageEventKind

STAGE: Mapping[StageState, Mapping[StageEventKind, StageState]] = {
    _T.WAITING: {_F.FED: _T.QUEUED, _F.RESTARTED: _T.WAITING, _F.DROPPED: _T.FINISHED},
    _T.QUEUED: {_F.ASSIGNED: _T.SENT, _F.RESTARTED: _T.WAITING, _F.DROPPED: _T.FINISHED},
    _T.SENT: {
        _F.ACCEPTED: _T.RUNNING,
        _F.BOUNCED: _T.QUEUED,
        _F.RESTARTED: _T.WAITING,
        _F.DROPPED: _T.FINISHED,
    },
    _T.RUNNING: {
        _F.ACCEPTED: _T.RUNNING,
        _F.FINISHED: _T.FINISHED,
        _F.RESTARTED: _T.WAITING,
        _F.DROPPED: _T.FINISHED,
    },
    _T.FINISHED: {_F.RESTARTED: _T.WAITING, _F.DROPPED: _T.FINISHED},
}


class IllegalTransitionError(Exception):
    """An event came in a state whose row does not know it: a defect of ours, never the client's fault."""


def next_session_state(state: SessionState, event: SessionEventKind) -> SessionState:
    try:
        return SESSION[state][event]
    except KeyError:
        raise IllegalTransitionError(f"session is {state}, it cannot be {event}") from None


def next_stage_state(state: StageState, event: StageEventKind) -> StageState:
    try:
        return STAGE[state][event]
    except KeyError:
        raise IllegalTransitionError(f"stage is {state}, it cannot be {event}") from None
