"""The operator as a process against a real control plane with fake nodes, with the rights that the chart gives it."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.cluster.control import ControlPlane
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.helm import Helm
from tests.support.operator_world import World, world
from tests.support.operators import PATIENT_LEASE, Installation, Operator

NUMBERS = itertools.count()

MakeOperator: TypeAlias = Callable[..., Operator]


@pytest.fixture(scope="session")
def installation(control_plane: ControlPlane, helm: Path) -> Installation:
    return Installation.of(control_plane, Helm(helm))


@pytest.fixture(scope="session")
def shared_operator(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """Not necessarily running: tests with operators of their own end it, tests without start it again."""
    operator = installation.operator(tmp_path_factory.mktemp("operator"), lease=PATIENT_LEASE)
    yield operator
    operator.stop()


@pytest.fixture
def operator(shared_operator: Operator) -> Iterator[Operator]:
    """One operator that runs, the same for many tests; its log is shown if the test fails."""
    shared_operator.start()
    begin = len(shared_operator.log)
    yield shared_operator
    print(f"---- log of the operator\n{shared_operator.log[begin:][-4000:]}")


@pytest.fixture
def make_operator(installation: Installation, shared_operator: Operator, tmp_path: Path) -> Iterator[MakeOperator]:
    """Operators of the test's own, not started yet; whatever still runs at its end is ended."""
    shared_operator.stop()
    with ExitStack() as operators:
        operators.callback(installation.free_lease)

        def make(identity: str = "operator-0", **changes: Any) -> Operator:
            operator = installation.operator(tmp_path / "operators", identity, **{"lease": PATIENT_LEASE, **changes})
            operators.callback(lambda: print(f"---- log of {identity}\n{operator.log[-4000:]}"))
            operators.callback(operator.stop)
            return operator

        yield make


@pytest.fixture
def a_world(installation: Installation) -> Iterator[World]:
    """A namespace of the test's own."""
    with world(installation.plane, f"team-{next(NUMBERS)}") as made:
        yield made


another_world = a_world
"""One more namespace."""


@pytest.fixture
def proxy(installation: Installation) -> Iterator[FaultProxy]:
    with fault_proxy(installation.plane) as made:
        yield made


@pytest.fixture
def proxied_operator(proxy: FaultProxy, make_operator: MakeOperator, tmp_path: Path) -> Operator:
    """An operator whose every call passes the proxy."""
    operator = make_operator("proxied")
    operator.kubeconfig = proxy.kubeconfig(tmp_path / "proxied.kubeconfig", of=operator.kubeconfig)
    return operator.start()
