"""The life of a worker as two tables: how its state changes, and in which states each control call is answered.

`control.py` only carries out what they say; docs/operations.md draws them, and a test holds the picture to the tables.
"""

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    LOADING = "loading"
    READY = "ready"
    SETTLING = "settling"
    """On its way to sleep: takes nothing new, finishes what runs."""
    ASLEEP = "asleep"
    WAKING = "waking"
    DRAINING = "draining"


class Event(StrEnum):
    LOADED = "loaded"
    SLEEP = "sleep"
    SLEPT = "slept"
    CALLED_OFF = "called off"
    """It did not become idle in time, or could not sleep."""
    WAKE = "wake"
    WOKEN = "woken"
    WAKE_FAILED = "wake failed"
    DRAIN = "drain"


class Call(StrEnum):
    SLEEP = "sleep"
    WAKE = "wake"
    START_PROFILE = "start profile"
    STOP_PROFILE = "stop profile"
    RESET_CACHE = "reset cache"
    DRAIN = "drain"
    STATS = "stats"


_S, _E = State, Event

TRANSITIONS: Mapping[State, Mapping[Event, State]] = {
    _S.LOADING: {_E.LOADED: _S.READY, _E.DRAIN: _S.DRAINING},
    _S.READY: {_E.SLEEP: _S.SETTLING, _E.DRAIN: _S.DRAINING},
    _S.SETTLING: {_E.SLEPT: _S.ASLEEP, _E.CALLED_OFF: _S.READY, _E.DRAIN: _S.DRAINING},
    _S.ASLEEP: {_E.WAKE: _S.WAKING, _E.DRAIN: _S.DRAINING},
    _S.WAKING: {_E.WOKEN: _S.READY, _E.WAKE_FAILED: _S.ASLEEP, _E.DRAIN: _S.DRAINING},
    # A worker that is told to leave never comes back, whatever it was about to do.
    _S.DRAINING: dict.fromkeys((_E.LOADED, _E.SLEPT, _E.CALLED_OFF, _E.WOKEN, _E.WAKE_FAILED, _E.DRAIN), _S.DRAINING),
}

ANSWERED: Mapping[Call, frozenset[State]] = {
    # Sleeping while asleep and waking while ready are answered, since what was asked for is so.
    Call.SLEEP: frozenset({_S.READY, _S.ASLEEP}),
    Call.WAKE: frozenset({_S.READY, _S.ASLEEP}),
    Call.START_PROFILE: frozenset({_S.READY}),
    Call.STOP_PROFILE: frozenset({_S.READY, _S.DRAINING}),
    Call.RESET_CACHE: frozenset({_S.READY, _S.ASLEEP}),
    Call.DRAIN: frozenset(State),
    Call.STATS: frozenset(State),
}

SLEEPING = frozenset({_S.SETTLING, _S.ASLEEP, _S.WAKING})
"""Alive, and takes work again once it is woken."""


class IllegalTransitionError(Exception):
    """A defect in the worker: an event came in a state that has no row for it."""


def next_state(state: State, event: Event) -> State:
    if event not in TRANSITIONS[state]:
        raise IllegalTransitionError(f'a worker that is {state} cannot see "{event}"')
    return TRANSITIONS[state][event]
