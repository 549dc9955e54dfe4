"""The worker's settings come from the command line, and what it leaves out from the pod."""

import argparse
from pathlib import Path

import pytest

from omni_runtime.worker.settings import WorkerSettings, add_arguments, settings_from


def settings(*arguments: str, **environment: str) -> WorkerSettings:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return settings_from(parser.parse_args(arguments), environment)


def test_in_a_pod_nothing_need_be_said():
    found = settings(OMNI_POD_NAME="painter-denoiser-0", OMNI_POD_IP="10.1.2.3")
    assert (found.stage_file, found.listen) == (Path("/etc/omni/stage.json"), "0.0.0.0:50051")
    assert (found.advertise, found.replica) == ("10.1.2.3:50051", "painter-denoiser-0")
    assert not found.die_with_parent and not found.log_json and found.metrics_port is None


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
