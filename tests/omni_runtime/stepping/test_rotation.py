from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_runtime.stepping.rotation import Rotation


def rotation_of(*members: str) -> Rotation[str]:
    rotation: Rotation[str] = Rotation()
    for member in members:
        rotation.join(member)
    return rotation


def test_members_get_their_turns_in_order_of_arrival():
    rotation = rotation_of("a", "b", "c")
    assert [rotation.take() for _ in range(3)] == ["a", "b", "c"]


def test_a_hurried_member_is_next():
    rotation = rotation_of("a", "b", "c")
    rotation.hurry("c")
    assert rotation.take() == "c"


def test_hurrying_a_member_that_does_not_wait_changes_nothing():
    rotation = rotation_of("a")
    rotation.hurry("b")
    assert (len(rotation), rotation.take()) == (1, "a")


def test_taking_from_an_empty_rotation_is_an_error():
    with pytest.raises(IndexError):
        rotation_of().take()


@given(needs=st.lists(st.integers(1, 20), min_size=1, max_size=12))
def test_nobody_is_ever_more_than_one_turn_ahead_of_another_that_still_needs_turns(needs):
    rotation: Rotation[int] = Rotation()
    for member in range(len(needs)):
        rotation.join(member)
    turns: Counter[int] = Counter()
    while len(rotation):
        member = rotation.take()
        turns[member] += 1
        if turns[member] < needs[member]:
            rotation.join(member)
        waiting = [turns[other] for other in range(len(needs)) if turns[other] < needs[other]]
        assert not waiting or max(waiting) - min(waiting) <= 1
    assert [turns[member] for member in range(len(needs))] == needs
