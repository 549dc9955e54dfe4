"""Certificates of a model against a real API server: what restarts, and what is told while a Secret is missing."""

import socket

import pytest
import yaml

from tests.control.conftest import MakeOperator
from tests.support.kubelet import not_ready, set_status, waiting
from tests.support.operator_models import a_spec
from tests.support.operator_world import CORE, Object, World
from tests.support.operators import Operator
from tests.support.waiting import eventually

pytestmark = pytest.mark.control

TLS = {"secretName": "toy-tls"}
OWN = {**TLS, "stages": [{"name": "denoiser", "secretName": "denoiser-tls"}]}


@pytest.fixture
def toy(a_world: World, operator: Operator) -> World:
    """A world in which the model "toy" is Ready and speaks TLS."""
    a_world.create("toy", a_spec(network={"tls": TLS}))
    a_world.wait_ready("toy")
    return a_world


def with_tls(world: World, tls: Object | None) -> dict[str, set[str]]:
    """The pods once the model has it."""

    def change(model: Object) -> None:
        model["spec"]["network"] = {} if tls is None else {"tls": tls}

    world.edit("toy", change)
    world.wait_ready("toy")
    return world.pod_ages("toy")


def secrets_of(world: World) -> dict[str, list[str]]:
    """Which Secret each component's pods mount."""
    return {
        name: [
            volume["secret"]["secretName"]
            for volume in one["spec"]["template"]["spec"]["volumes"]
            if "secret" in volume
        ]
        for name, one in world.children("deployments", "toy").items()
    }


@pytest.mark.case("operator:C16")
def test_a_certificate_for_one_stage_restarts_that_stage_and_none_for_the_model_restarts_all(toy: World) -> None:
    assert set(map(tuple, secrets_of(toy).values())) == {("toy-tls",)}
    before = toy.pod_ages("toy")
    own = with_tls(toy, OWN)
    assert {name for name in before if before[name] != own[name]} == {"denoiser"}
    assert secrets_of(toy)["toy-denoiser"] == ["denoiser-tls"]
    plain = with_tls(toy, None)
    assert all(own[name] != plain[name] for name in own)
    assert set(map(tuple, secrets_of(toy).values())) == {()}


@pytest.mark.case("operator:G12")
def test_a_pod_that_waits_for_its_secret_is_explained_and_forgotten_once_it_runs(toy: World) -> None:
    pod = next(one for name, one in toy.pods("toy").items() if name.startswith("toy-denoiser-"))
    words = 'MountVolume.SetUp failed for volume "tls" : references non-existent secret key: ca.crt'
    running = pod["status"]
    set_status(toy, pod, conditions=not_ready(running), containerStatuses=[waiting("ContainerCreating")])
    toy.plane.rest.post(f"{CORE.format(namespace=toy.namespace)}/events", mount_failure(toy, pod, words))
    stage = eventually("the kubelet is quoted", lambda: told(toy, words))
    assert stage["hint"].startswith('create Secret "toy-tls" in the model\'s namespace with the keys tls.crt, tls.key')
    assert toy.condition("toy", "Ready") == "False"
    set_status(toy, pod, conditions=running["conditions"], containerStatuses=running["containerStatuses"])
    toy.wait_ready("toy")
    assert not told(toy, words)


def test_an_operator_that_is_told_no_address_is_reached_from_this_host_only(make_operator: MakeOperator) -> None:
    """127.0.0.2 is this host, too: whatever listens on every address answers there."""
    operator = make_operator().start()
    settings = yaml.safe_load((operator.folder / f"{operator.identity}.yaml").read_text())
    for port in (settings["probePort"], settings["metricsPort"]):
        eventually(f"port {port} is open", lambda port=port: is_listening("127.0.0.1", port))
        assert not is_listening("127.0.0.2", port)


def is_listening(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def told(world: World, words: str) -> Object:
    """The row of the stage whose message has the words."""
    rows: list[Object] = world.model("toy")["status"]["stages"]
    return next((row for row in rows if words in row.get("message", "")), {})


def mount_failure(world: World, pod: Object, words: str) -> Object:
    name = pod["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1", "namespace": world.namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": name, "namespace": world.namespace},
        "reason": "FailedMount",
        "message": words,
        "type": "Warning",
        "source": {"component": "kubelet"},
    }
