"""How fast the operator acts, and that it rests: `python -m benchmarks.reconcile`.

A real control plane with fake nodes; times are the API server's own, from its audit log.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.ledger import write_entry
from tests.cluster.control import Size
from tests.cluster.fixtures import control_plane_in
from tests.cluster.programs import ensure
from tests.cluster.recipes import CONTROL, HELM
from tests.cluster.settings import Settings
from tests.cluster.steps import Steps
from tests.support.helm import Helm
from tests.support.idle_writes import writes_of_ours
from tests.support.operator_models import a_spec
from tests.support.operator_world import World, world
from tests.support.operators import Installation
from tests.support.waiting import eventually

COMMAND = "python -m benchmarks.reconcile"
CHILDREN = {"controllerrevisions", "configmaps", "serviceaccounts", "rolebindings", "services", "deployments"}
CHILDREN_OF_A_MODEL = 15
"""Of three stages: a Deployment, a Service and a file each, a Deployment, a Service, an account, a binding and a table
for the frontend, and the stored revision."""

PATIENCE_S = 300
CALM_POLL_S = 1.0
"""Each look costs the API server a TLS handshake, and what is measured must not wait for it."""

SETTLING_S = 10
"""The counting begins when the last model has been Ready for a while."""


@dataclass(frozen=True)
class Write:
    """One write of the operator; times are seconds of the API server's clock."""

    resource: str
    name: str
    asked_at: float
    done_at: float


@dataclass(frozen=True)
class Latency:
    """Of one model, from the moment its creation reached the API server."""

    to_children_s: float
    to_ready_s: float


def latencies(audit_log: Path, names: list[str]) -> list[Latency]:
    writes = list(_writes(audit_log))
    return [_latency(name, [write for write in writes if _is_of(write, name)]) for name in names]


def _latency(name: str, writes: list[Write]) -> Latency:
    begin = next(write.asked_at for write in writes if write.resource == "omnimodels")
    first: dict[tuple[str, str], float] = {}
    for write in writes:
        if write.resource in CHILDREN:
            first.setdefault((write.resource, write.name), write.done_at)
    if len(first) != CHILDREN_OF_A_MODEL:
        raise RuntimeError(f"{name} has {len(first)} children, {CHILDREN_OF_A_MODEL} were expected: {sorted(first)}")
    ready = max(write.done_at for write in writes if write.resource == "omnimodels/status")
    return Latency(max(first.values()) - begin, ready - begin)


def _writes(audit_log: Path) -> Iterator[Write]:
    for line in audit_log.read_text().splitlines():
        event = json.loads(line)
        target = event.get("objectRef", {})
        if event["verb"] in ("create", "patch") and event["responseStatus"].get("code", 0) < 300:
            resource = "/".join(filter(None, (target.get("resource"), target.get("subresource"))))
            times = (event["requestReceivedTimestamp"], event["stageTimestamp"])
            asked, done = (datetime.fromisoformat(text).timestamp() for text in times)
            yield Write(resource, target.get("name", ""), asked, done)


def _is_of(write: Write, name: str) -> bool:
    return write.name == name or write.name.startswith(f"{name}-")


def measured(place: World, prefix: str, count: int, pause: Callable[[str], None]) -> list[Latency]:
    """Of models of three stages, which are deleted again; `pause` is called after each with its name."""
    names = [f"{prefix}{number:03}" for number in range(count)]
    for name in names:
        place.create(name, a_spec())
        pause(name)
    place.wait_ready(*names, patience_s=PATIENCE_S, poll_s=CALM_POLL_S)
    taken = latencies(place.plane.audit_log, names)
    for name in names:
        place.delete(name)
    eventually("the models' pods are gone", lambda: not any(map(place.pods, names)), PATIENCE_S)
    return taken


def idle_writes(place: World, count: int, seconds: float) -> int:
    """Writes while nothing happens; raises if an edit afterwards would not have been seen."""

    def writes() -> int:
        return len(writes_of_ours(place.plane.audit_log, [place.namespace]))

    names = [f"idle{number:03}" for number in range(count)]
    for name in names:
        place.create(name, a_spec())
    place.wait_ready(*names, patience_s=PATIENCE_S)
    time.sleep(SETTLING_S)
    before = writes()
    time.sleep(seconds)
    counted = writes() - before
    place.edit(names[0], lambda model: model["spec"]["stages"][0].update(replicas=2))
    eventually("an edit moves the counter", lambda: writes() > before + counted)
    return counted


def p99(values: list[float]) -> float:
    return sorted(values)[max(0, -(-len(values) * 99 // 100) - 1)]


@contextmanager
def running_operator() -> Iterator[World]:
    settings = Settings.from_environment({})
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        programs = ensure(settings, (*CONTROL, HELM), Steps())
        plane = stack.enter_context(control_plane_in(Path(folder) / "plane", programs, Size.NODES))
        operator = Installation.of(plane, Helm(programs["helm"])).operator(Path(folder) / "operator")
        stack.callback(operator.stop)
        operator.start()
        place = stack.enter_context(world(plane, "bench"))
        place.create("warm-up", a_spec())
        place.wait_ready("warm-up")
        yield place


def report(name: str, value: float, unit: str) -> None:
    write_entry(name, round(value, 3), unit, command=COMMAND)
    print(f"{name:44} {value:10.3f} {unit}")


def measure_latency(place: World, models: int) -> None:
    """One model after another, each when the one before is Ready; then all at once, which loads the machine fully."""
    single = measured(place, "one", models, lambda name: place.wait_ready(name, poll_s=CALM_POLL_S))
    report("operator.apply_to_children.p99_s", p99([one.to_children_s for one in single]), "s")
    report("operator.apply_to_ready_s", statistics.median(one.to_ready_s for one in single), "s")
    burst = measured(place, "all", models, lambda name: None)
    report("operator.apply_to_children.burst_p99_s", p99([one.to_children_s for one in burst]), "s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("latency", "idle"), help="default: both")
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--idle-models", type=int, default=20)
    parser.add_argument("--idle-seconds", type=float, default=600)
    options = parser.parse_args()
    with running_operator() as place:
        if options.part in (None, "latency"):
            measure_latency(place, options.models)
        if options.part in (None, "idle"):
            writes = idle_writes(place, options.idle_models, options.idle_seconds)
            report("operator.idle_writes_10min", writes, "writes")


if __name__ == "__main__":
    main()
