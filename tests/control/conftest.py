"""The operator as a process against a real control plane with fake nodes, with the rights that the chart gives it."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.control import ControlPlane
from tests.support.helm import Helm
from tests.support.operator_world import World, world
from tests.support.operators import Installation, Operator

NUMBERS = itertools.count()

MakeOperator = Callable[..., Operator]


@pytest.fixture(scope="session")
def installation(control_plane: ControlPlane, helm: Path) -> Installation:
    return Installation.of(control_plane, Helm(helm))


@pytest.fixture
def make_operator(installation: Installation, tmp_path: Path) -> Iterator[MakeOperator]:
    """Operators that are not started; whatever runs at the end of the test is ended, and its log shown on failure."""
    with ExitStack() as operators:

        def make(identity: str = "operator-0", **changes: Any) -> Operator:
            operator = installation.operator(tmp_path / "operators", identity, **changes)
            operators.callback(lambda: print(f"---- log of {identity}\n{operator.log[-4000:]}"))
            operators.callback(operator.stop)
            return operator

        yield make


@pytest.fixture
def operator(make_operator: MakeOperator) -> Operator:
    return make_operator().start()


@pytest.fixture
def a_world(installation: Installation) -> Iterator[World]:
    """A namespace of the test's own."""
    with world(installation.plane, f"team-{next(NUMBERS)}") as made:
        yield made
