"""Which replica gets the work."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from omni_runtime.orchestrator.graph import plan
from omni_runtime.orchestrator.routing import ReplicaInfo, Wish, can_read, choose, preferred, viable
from tests.support.stage_tables import chain


@dataclass(frozen=True)
class At:
    """A replica as the choice sees it."""

    address: str = "a"
    work_left_s: float = 0.0
    slowness: float = 1.0
    max_in_flight: int = 4
    last_chosen: int = 0
    locality: str = "here"


def info(stage: str, boot: str, inputs: Mapping[str, str] = {}, outputs: Mapping[str, str] = {}) -> ReplicaInfo:
    return ReplicaInfo("unix:x", boot, boot, stage, "r1", 4, inputs, outputs)


def test_the_replica_with_the_least_work_per_slot_is_chosen() -> None:
    assert choose([At("full", work_left_s=3), At("free", work_left_s=1)], 1) == At("free", work_left_s=1)
    small, large = At("small", work_left_s=1, max_in_flight=2), At("large", work_left_s=2, max_in_flight=8)
    assert choose([small, large], 1) == large


def test_one_long_request_weighs_more_than_many_short_ones() -> None:
    one_long, many_short = At("one-long", work_left_s=10), At("many-short", work_left_s=20 * 0.1)
    assert choose([one_long, many_short], 0.1) == many_short


def test_a_slow_replica_gets_less_work_than_a_fast_one() -> None:
    slow, fast = At("slow", work_left_s=1, slowness=4), At("fast", work_left_s=3)
    assert choose([slow, fast], 1) == fast


def test_a_replica_beside_the_inputs_is_chosen_unless_another_is_done_much_sooner() -> None:
    wish = Wish(localities=frozenset({"node-1"}))
    near, far = At("near", locality="node-1", last_chosen=7), At("far", locality="node-2")
    assert choose([far, near], 1, wish) == near
    assert choose([far, replace(near, work_left_s=1)], 1, wish) == far


def test_requests_of_one_key_meet_at_one_replica_and_keys_spread_over_all() -> None:
    replicas = [At(name) for name in "abcd"]
    homes = {key: choose(replicas, 1, Wish(affinity=key)) for key in map(str, range(64))}
    assert set(homes.values()) == set(replicas)
    assert all(choose(replicas[::-1], 1, Wish(affinity=key)) == home for key, home in homes.items())


def test_a_replica_that_goes_takes_only_its_own_keys_along() -> None:
    replicas = [At(name) for name in "abcd"]
    for key in map(str, range(64)):
        before, after = (choose(some, 1, Wish(affinity=key)) for some in (replicas, replicas[1:]))
        assert before in (after, replicas[0])


def test_no_request_waits_for_the_replica_of_its_key_while_another_is_free() -> None:
    replicas = [At("a"), At("b")]
    home = choose(replicas, 1, Wish(affinity="key"))
    busy = [replace(one, work_left_s=1) if one == home else one for one in replicas]
    chosen = choose(busy, 1, Wish(affinity="key"))
    assert chosen is not None and home is not None and chosen.address != home.address


def test_nobody_to_choose_from_is_none() -> None:
    assert choose([], 1) is None


def test_ties_go_round() -> None:
    replicas = {name: At(name) for name in ("a", "b", "c")}
    order = []
    for turn in range(1, 7):
        chosen = choose(list(replicas.values()), 1)
        assert chosen
        order.append(chosen.address)
        replicas[chosen.address] = replace(chosen, last_chosen=turn)
    assert order == ["a", "b", "c", "a", "b", "c"]


def test_a_replica_that_failed_is_taken_again_only_if_there_is_no_other() -> None:
    assert preferred([At("a"), At("b")], frozenset({"a"})) == [At("b")]
    assert preferred([At("a")], frozenset({"a"})) == [At("a")]


def test_a_consumer_must_share_the_contract_of_each_edge() -> None:
    consumer = info("b", "b1", inputs={"a->b": "h1"})
    assert can_read(consumer, {"a->b": "h1"})
    assert not can_read(consumer, {"a->b": "h2"})
    assert not can_read(consumer, {"x->b": "h1"})


def test_a_replica_whose_work_nobody_could_carry_on_gets_none() -> None:
    """A mixed rollout: the old encoder has no old denoiser any more."""
    two = plan(chain("a", "b"))
    replicas = {
        "a": [info("a", "old", outputs={"a->b": "h1"}), info("a", "new", outputs={"a->b": "h2"})],
        "b": [info("b", "b-new", inputs={"a->b": "h2"})],
    }
    assert viable(two, replicas) == {"new", "b-new"}


def test_what_ends_nowhere_is_not_viable_however_long_the_chain() -> None:
    three = plan(chain("a", "b", "c"))
    replicas = {
        "a": [info("a", "a1", outputs={"a->b": "h"})],
        "b": [info("b", "b1", inputs={"a->b": "h"}, outputs={"b->c": "h"})],
    }
    assert viable(three, replicas) == set()


candidates = st.builds(
    At,
    work_left_s=st.integers(0, 20).map(float),
    slowness=st.sampled_from([0.5, 1.0, 4.0]),
    max_in_flight=st.integers(1, 8),
    last_chosen=st.integers(0, 100),
)


@given(st.lists(candidates, min_size=1, max_size=6))
def test_no_candidate_would_be_done_before_the_chosen_one(all_of: list[At]) -> None:
    def done_in_s(one: At) -> float:
        return (one.work_left_s + 1) * one.slowness / one.max_in_flight

    chosen = choose(all_of, 1)
    assert chosen
    assert all(done_in_s(chosen) <= done_in_s(one) for one in all_of)


@given(st.integers(1, 5), st.integers(1, 60))
def test_equal_replicas_get_equal_shares(count: int, requests: int) -> None:
    given_to = {str(index): 0 for index in range(count)}
    last = dict.fromkeys(given_to, 0)
    for turn in range(1, requests + 1):
        chosen = choose([At(name, given_to[name], 1.0, 100, last[name]) for name in given_to], 1)
        assert chosen
        given_to[chosen.address] += 1
        last[chosen.address] = turn
    assert max(given_to.values()) - min(given_to.values()) <= 1
