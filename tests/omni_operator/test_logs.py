"""The operator's log: lines in the form that the chart asks for, and no standstill when nobody reads them."""

import json
import subprocess
import sys

import pytest

LINES = 2000
"""Of a hundred characters each: more than a pipe holds."""
PROGRAM = f"""
import logging
from omni_operator.logs import configure_logs
from omni_operator.settings import LogSettings
configure_logs(LogSettings(format="json"))
for number in range({LINES}):
    logging.getLogger("omni_operator").info("%d %s", number, 100 * "x")
"""


@pytest.fixture
def operator() -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=subprocess.PIPE, text=True)


def test_a_log_that_nobody_reads_does_not_stop_the_operator(operator: "subprocess.Popen[str]") -> None:
    assert operator.wait(30) == 0
    operator.communicate()


def test_a_log_that_is_read_has_every_line(operator: "subprocess.Popen[str]") -> None:
    _, log = operator.communicate(timeout=30)
    assert [json.loads(line)["message"].split()[0] for line in log.splitlines()] == list(map(str, range(LINES)))
