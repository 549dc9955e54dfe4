"""The worker's settings come from the command line, and what it leaves out from the pod."""

import argparse
from pathlib import Path

import pytest

from omni_runtime.worker.listening import beside
from omni_runtime.worker.settings import WorkerSettings, add_arguments, settings_from


def settings(*arguments: str, **environment: str) -> WorkerSettings:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return settings_from(parser.parse_args(arguments), environment)


def test_in_a_pod_nothing_need_be_said():
    pod = {"OMNI_POD_NAME": "painter-denoiser-0", "OMNI_POD_IP": "10.1.2.3", "OMNI_NAMESPACE": "team"}
    found = settings("--listen", "0.0.0.0:50051", **pod)
    assert found.stage_file == Path("/etc/omni/stage.json")
    assert (found.advertise, found.replica, found.namespace) == ("10.1.2.3:50051", "painter-denoiser-0", "team")
    assert not found.die_with_parent and not found.log_json and found.metrics_port is None


def test_a_worker_that_is_told_nothing_is_reached_from_this_host_only_and_in_the_clear():
    found = settings(OMNI_POD_IP="10.1.2.3")
    assert (found.listen, found.advertise) == ("127.0.0.1:50051", "127.0.0.1:50051")
    assert (found.tls, found.health_port, found.admin, found.namespace) == (None, None, None, "default")


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:50051", "127.0.0.1:9090"),
        ("0.0.0.0:50051", "0.0.0.0:9090"),
        ("[::]:50051", "[::]:9090"),
        ("unix:/run/stage.sock", "127.0.0.1:9090"),
    ],
)
def test_probes_and_metrics_listen_beside_the_stage(listen: str, address: str):
    assert beside(listen, 9090) == address


@pytest.mark.parametrize(
    ("arguments", "environment", "advertise"),
    [
        (("--listen", "0.0.0.0:6000"), {"OMNI_POD_IP": "10.1.2.3"}, "10.1.2.3:6000"),
        (("--listen", "[::]:6000"), {"OMNI_POD_IP": "fd00::1"}, "[fd00::1]:6000"),
        (("--listen", "unix:/run/a.sock"), {"OMNI_POD_IP": "10.1.2.3"}, "unix:/run/a.sock"),
        (("--listen", "127.0.0.1:6000"), {}, "127.0.0.1:6000"),
        (("--advertise", "a:1"), {"OMNI_POD_IP": "10.1.2.3"}, "a:1"),
    ],
)
def test_others_dial_the_pod_unless_told_otherwise(
    arguments: tuple[str, ...], environment: dict[str, str], advertise: str
):
    assert settings(*arguments, **environment).advertise == advertise


@pytest.mark.parametrize("switch", ["die_with_parent", "log_json"])
def test_a_switch_is_off_unless_it_is_given(switch: str):
    assert getattr(settings(), switch) is False
    assert getattr(settings(f"--{switch.replace('_', '-')}"), switch) is True
