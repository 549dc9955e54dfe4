"""The two tables: what they promise about retries and endings."""

import pytest

from omni_runtime.orchestrator.states import (
    SESSION,
    STAGE,
    TERMINAL,
    IllegalTransitionError,
    SessionEventKind,
    SessionState,
    StageEventKind,
    StageState,
    next_session_state,
    next_stage_state,
)

OPEN = [state for state in SessionState if state not in TERMINAL]


def after(*events: SessionEventKind) -> SessionState:
    state = SessionState.QUEUED
    for event in events:
        state = next_session_state(state, event)
    return state


ACCEPTED, LOST, ANSWERED = SessionEventKind.ACCEPTED, SessionEventKind.LOST, SessionEventKind.ANSWERED


def test_work_that_is_lost_once_runs_again_and_lost_twice_fails() -> None:
    assert after(ACCEPTED, LOST) is SessionState.RETRYING
    assert after(ACCEPTED, LOST, ACCEPTED, LOST) is SessionState.FAILED


@pytest.mark.parametrize("before", [(ACCEPTED,), (ACCEPTED, LOST)])
def test_nothing_runs_again_once_something_has_gone_to_the_client(before: tuple[SessionEventKind, ...]) -> None:
    assert after(*before, ANSWERED, LOST) is SessionState.FAILED


@pytest.mark.parametrize("state", OPEN)
def test_every_open_session_can_be_refused_expire_and_be_cancelled(state: SessionState) -> None:
    assert next_session_state(state, SessionEventKind.REFUSED) is SessionState.FAILED
    assert next_session_state(state, SessionEventKind.EXPIRED) is SessionState.FAILED
    assert next_session_state(state, SessionEventKind.CANCELLED) is SessionState.ABORTED


@pytest.mark.parametrize("state", TERMINAL)
@pytest.mark.parametrize("event", SessionEventKind)
def test_a_session_ends_once(state: SessionState, event: SessionEventKind) -> None:
    with pytest.raises(IllegalTransitionError, match=state):
        next_session_state(state, event)


def test_a_session_that_no_worker_has_taken_can_neither_lose_nor_complete() -> None:
    assert {LOST, ANSWERED, SessionEventKind.COMPLETED}.isdisjoint(SESSION[SessionState.QUEUED])


def test_every_state_has_a_row_and_every_open_one_is_reached() -> None:
    assert SESSION.keys() == set(SessionState)
    assert STAGE.keys() == set(StageState)
    reached = {state for row in SESSION.values() for state in row.values()}
    assert reached == set(SessionState) - {SessionState.QUEUED}


def test_a_stage_that_bounces_waits_for_a_replica_again() -> None:
    assert next_stage_state(StageState.SENT, StageEventKind.BOUNCED) is StageState.QUEUED


@pytest.mark.parametrize("state", StageState)
def test_every_stage_can_be_started_over(state: StageState) -> None:
    assert next_stage_state(state, StageEventKind.RESTARTED) is StageState.WAITING


def test_a_stage_cannot_finish_before_a_worker_has_accepted_it() -> None:
    for state in (StageState.WAITING, StageState.QUEUED, StageState.SENT):
        with pytest.raises(IllegalTransitionError, match=state):
            next_stage_state(state, StageEventKind.FINISHED)
