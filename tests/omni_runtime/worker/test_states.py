"""The two tables: what they promise, and that every state and call has its row."""

import pytest

from omni_runtime.worker.states import (
    ANSWERED,
    SLEEPING,
    TRANSITIONS,
    Call,
    Event,
    IllegalTransitionError,
    State,
    next_state,
)


def after(*events: Event) -> State:
    state = State.LOADING
    for event in events:
        state = next_state(state, event)
    return state


def test_every_state_has_a_row_and_every_one_but_the_first_is_reached() -> None:
    assert TRANSITIONS.keys() == set(State)
    assert {state for row in TRANSITIONS.values() for state in row.values()} == set(State) - {State.LOADING}
    assert ANSWERED.keys() == set(Call)


def test_a_worker_that_slept_and_was_woken_is_as_ready_as_before() -> None:
    assert after(Event.LOADED, Event.SLEEP, Event.SLEPT, Event.WAKE, Event.WOKEN) is State.READY


def test_a_sleep_that_is_called_off_leaves_it_ready_and_a_failed_wake_leaves_it_asleep() -> None:
    assert after(Event.LOADED, Event.SLEEP, Event.CALLED_OFF) is State.READY
    assert after(Event.LOADED, Event.SLEEP, Event.SLEPT, Event.WAKE, Event.WAKE_FAILED) is State.ASLEEP


@pytest.mark.parametrize("state", State)
def test_every_worker_can_be_drained(state: State) -> None:
    assert next_state(state, Event.DRAIN) is State.DRAINING


@pytest.mark.parametrize("event", [Event.LOADED, Event.SLEPT, Event.CALLED_OFF, Event.WOKEN, Event.WAKE_FAILED])
def test_a_draining_worker_never_comes_back_whatever_it_was_about_to_do(event: Event) -> None:
    assert next_state(State.DRAINING, event) is State.DRAINING


def test_nothing_sleeps_or_wakes_that_is_told_to_leave() -> None:
    assert {Event.SLEEP, Event.WAKE}.isdisjoint(TRANSITIONS[State.DRAINING])
    with pytest.raises(IllegalTransitionError, match='draining cannot see "sleep"'):
        next_state(State.DRAINING, Event.SLEEP)


@pytest.mark.parametrize("state", SLEEPING)
def test_while_it_sleeps_only_what_needs_no_weights_is_answered(state: State) -> None:
    answered = {call for call, states in ANSWERED.items() if state in states}
    assert {Call.STATS, Call.DRAIN} <= answered
    assert {Call.START_PROFILE, Call.STOP_PROFILE}.isdisjoint(answered)
