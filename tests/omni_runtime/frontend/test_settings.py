"""The frontend's settings: what holds if nothing is said."""

import argparse
from pathlib import Path

from omni_runtime.frontend.settings import FrontendSettings, add_arguments, settings_from


def settings(*arguments: str, **environment: str) -> FrontendSettings:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return settings_from(parser.parse_args(arguments), environment)


def test_a_frontend_that_is_told_nothing_is_reached_from_this_host_only():
    assert settings().host == "127.0.0.1"
    assert settings("--host", "0.0.0.0").host == "0.0.0.0"


def test_workers_are_reached_in_the_clear_unless_there_is_a_certificate():
    assert settings().tls is None
    assert settings("--tls", "/etc/omni/tls").tls == Path("/etc/omni/tls")
