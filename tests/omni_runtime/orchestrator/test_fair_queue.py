"""Whose turn it is when several tenants wait."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from omni_runtime.orchestrator.fair_queue import FairQueue

ARRIVALS = st.lists(st.tuples(st.sampled_from(["red", "green", "blue"]), st.integers(-2, 2)), max_size=40)


def queue_of(*items: str, priority: int = 0) -> FairQueue[str]:
    """Items are named by their tenant and a number: "red1"."""
    queue: FairQueue[str] = FairQueue()
    for item in items:
        queue.push(item, item.rstrip("0123456789"), priority)
    return queue


def drain(queue: FairQueue[str]) -> list[str]:
    served = []
    while queue:
        served.append(next(queue.turns()))
        queue.serve(served[-1])
    return served


def test_one_tenant_is_served_in_the_order_of_arrival() -> None:
    assert drain(queue_of("red1", "red2", "red3")) == ["red1", "red2", "red3"]


def test_tenants_take_turns_whoever_came_first() -> None:
    assert drain(queue_of("red1", "red2", "red3", "green1", "green2")) == ["red1", "green1", "red2", "green2", "red3"]


def test_a_flood_delays_another_tenants_single_request_by_one_turn() -> None:
    queue = queue_of(*(f"red{number}" for number in range(1000)))
    for _ in range(500):
        queue.serve(next(queue.turns()))
    queue.push("green1", "green")
    assert drain(queue).index("green1") <= 1


def test_a_tenant_that_was_idle_has_saved_nothing_up() -> None:
    queue = queue_of(*(f"red{number}" for number in range(100)), "green1")
    for _ in range(51):
        queue.serve(next(queue.turns()))
    for number in range(2, 12):
        queue.push(f"green{number}", "green")
    assert Counter(item.rstrip("0123456789") for item in drain(queue)[:10]) == {"red": 5, "green": 5}


def test_a_tenant_that_comes_back_at_once_waits_for_the_others_turn() -> None:
    queue = queue_of("red1", "green1", "green2")
    queue.serve("red1")
    queue.push("red2", "red")
    assert drain(queue) == ["green1", "red2", "green2"]


def test_priorities_order_a_tenants_own_requests_only() -> None:
    queue = queue_of("red1", "green1", "red2")
    queue.push("green9", "green", priority=-5)
    queue.push("red9", "red", priority=5)
    assert drain(queue) == ["red1", "green9", "red2", "green1", "red9"]


def test_lost_work_goes_first_and_costs_its_tenant_nothing() -> None:
    queue = queue_of("red1", "green1")
    queue.push_urgent("red0")
    assert drain(queue) == ["red0", "red1", "green1"]


def test_an_item_that_left_is_not_offered() -> None:
    queue = queue_of("red1", "red2")
    queue.remove("red1")
    assert (drain(queue), len(queue), queue.waiting()) == (["red2"], 0, {})


def test_the_last_of_a_tenant_is_the_newest_of_its_least_urgent() -> None:
    queue = queue_of("red1", "red2", "green1")
    queue.push("red0", "red", priority=-1)
    assert (queue.last("red"), queue.waiting()) == ("red2", {"red": 3, "green": 1})


def test_tenants_without_requests_are_forgotten() -> None:
    queue = queue_of(*(f"t{name}x" for name in "abc"), *(f"red{number}" for number in range(9)))
    drain(queue)
    assert len(queue._lines) <= 1


@given(ARRIVALS)
def test_each_item_is_offered_once(arrivals: list[tuple[str, int]]) -> None:
    queue: FairQueue[int] = FairQueue()
    for item, (tenant, priority) in enumerate(arrivals):
        queue.push(item, tenant, priority)
    assert sorted(queue.turns()) == list(range(len(arrivals)))


@given(ARRIVALS, st.data())
def test_who_stays_is_offered_once_whatever_leaves_or_comes_in_between(
    arrivals: list[tuple[str, int]], data: st.DataObject
) -> None:
    queue: FairQueue[int] = FairQueue()
    for item, (tenant, priority) in enumerate(arrivals):
        queue.push(item, tenant, priority)
    offered: list[int] = []
    gone: set[int] = set()
    for item in queue.turns():
        offered.append(item)
        leaves = data.draw(st.sampled_from(sorted(set(queue))))
        gone.add(leaves)
        queue.serve(leaves) if data.draw(st.booleans()) else queue.remove(leaves)
    assert len(offered) == len(set(offered))
    assert set(range(len(arrivals))) - gone <= set(offered)


@given(st.lists(st.sampled_from(["red", "green", "blue"]), min_size=1, max_size=60))
def test_no_tenant_that_waits_gets_two_turns_behind_another(tenants: list[str]) -> None:
    """The fairness bound of start-time fair queueing for equal requests."""
    queue: FairQueue[int] = FairQueue()
    for item, tenant in enumerate(tenants):
        queue.push(item, tenant)
    served: Counter[str] = Counter()
    while queue:
        item = next(queue.turns())
        queue.serve(item)
        served[tenants[item]] += 1
        busy = [served[tenant] for tenant in queue.waiting()]
        assert not busy or max(served[tenant] for tenant in served) - min(busy) <= 1
