"""The operator is killed after each of its writes in turn; the next one brings the model to where it should be."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from tests.support.fault_proxy import Call, FaultProxy
from tests.support.operator_models import a_spec, a_stage
from tests.support.operator_world import Object, World
from tests.support.operators import Operator
from tests.support.waiting import eventually

pytestmark = pytest.mark.control

HASH = re.compile("-[0-9a-f]{10}$")


def one_stage() -> Object:
    return a_spec(a_stage("first"))


def change(model: Object) -> None:
    """Another stage in place of the first."""
    model["spec"] = a_spec(a_stage("second", sampling={"steps": 2}))


def shape(world: World, model: str) -> set[str]:
    """The children without what is particular to one model: its name, and hashes of content."""
    return {HASH.sub("", name.replace(model, "MODEL")) for name in world.all_children(model)}


def is_settled(world: World, model: str, expected: set[str]) -> bool:
    return world.condition(model, "Ready") == "True" and shape(world, model) == expected


@dataclass(frozen=True)
class Cuts:
    """Kills the operator when the server has answered a write, but the operator has not heard."""

    proxy: FaultProxy
    operator: Operator

    def cut(self, act: Callable[[], object], after_write: int, is_done: Callable[[], bool]) -> bool:
        """Whether there were that many writes until all was done."""
        left, is_hit = iter(range(after_write)), threading.Event()

        def kill(call: Call) -> None:
            if call.is_write and next(left, None) is None:
                is_hit.set()
                self.operator.kill()

        def is_over() -> bool:
            return is_hit.is_set() or is_done()

        self.proxy.after = kill
        act()
        eventually("the operator is killed, or has no more to write", is_over)
        self.proxy.after = lambda call: None
        if not is_hit.is_set():
            return False
        eventually("the operator is dead", lambda: not self.operator.process.is_running)
        self.operator.start()
        return True


@pytest.mark.case("operator:A18")
@pytest.mark.case("operator:A17")
def test_create_update_and_delete_converge_from_every_cut(
    a_world: World, proxy: FaultProxy, proxied_operator: Operator
) -> None:
    a_world.create("uncut", one_stage())
    a_world.wait_ready("uncut")
    creates, made = len(proxy.writes()), shape(a_world, "uncut")
    a_world.edit("uncut", change)
    eventually(
        "nothing of the first stage is left", lambda: not any("-first" in one for one in a_world.all_children("uncut"))
    )
    a_world.wait_ready("uncut")
    updates, changed = len(proxy.writes()) - creates, shape(a_world, "uncut")
    assert creates >= 11
    assert updates >= 9

    killer, cuts = Cuts(proxy, proxied_operator), 0
    for cut in range(creates):
        name = f"m{cut}x"
        is_made = partial(is_settled, a_world, name, made)
        cuts += killer.cut(partial(a_world.create, name, one_stage()), cut, is_made)
        eventually(f"{name} is as made without a cut", is_made)
        if cut < updates:
            is_changed = partial(is_settled, a_world, name, changed)
            cuts += killer.cut(partial(a_world.edit, name, change), cut, is_changed)
            eventually(f"{name} is as changed", is_changed)
    assert cuts >= creates + updates - 6, "only writes of the status may fall together"

    before = len(proxy.writes())
    for name in ("uncut", *(f"m{cut}x" for cut in range(creates))):
        a_world.delete(name)
        eventually(f"nothing of {name} is left", lambda name=name: not a_world.all_children(name))  # type: ignore[misc]
    assert proxy.writes()[before:] == [], (
        "deleting is the garbage collector's: the operator has no call to be cut after"
    )
