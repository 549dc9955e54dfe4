"""Why a container ended, in one sentence: exit code, its meaning, the last line of the log."""

import json

import pytest

from omni_contract.wire.exit_codes import ExitCode
from omni_operator.plan.ends import HINTS, MORE_MEMORY, describe_end, hint_about

SAID = 'stage "denoiser" cannot load: /models/none is no folder'


def log_of(*lines: str) -> str:
    """As a pod's process writes it with --log-json."""
    return "".join(json.dumps({"level": "ERROR", "message": line, "stage": "denoiser"}) + "\n" for line in lines)


def test_the_last_line_of_a_json_log_is_told_as_a_sentence() -> None:
    ended = {"exitCode": 3, "reason": "Error", "message": log_of("loading", SAID)}
    assert describe_end(ended) == f"exited with status 3 (the engine cannot load): {SAID}"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("Traceback …\nValueError: no\n\n", "ValueError: no"),
        ("cut off in front of this\n" + log_of(SAID), SAID),
        ('["a list"]', '["a list"]'),
        ("{}", "{}"),
        ("", "Error"),
    ],
)
def test_a_line_that_is_no_log_line_of_ours_is_quoted(log: str, said: str) -> None:
    assert describe_end({"exitCode": 77, "reason": "Error", "message": log}) == f"exited with status 77: {said}"


def test_an_end_about_which_nobody_said_anything_says_so() -> None:
    assert describe_end({"exitCode": 77}) == "exited with status 77: no reason given"


def test_a_signal_is_named() -> None:
    assert describe_end({"exitCode": 137, "reason": "Error"}) == "exited with status 137 (killed by SIGKILL): Error"


def test_too_little_memory_is_told_by_the_kubelet_and_by_the_process() -> None:
    assert hint_about({"exitCode": 137, "reason": "OOMKilled"}, "") == MORE_MEMORY
    assert "resources.memory" in hint_about({"exitCode": 6, "reason": "Error"}, "")


@pytest.mark.parametrize("code", sorted(set(ExitCode) - {ExitCode.OK, ExitCode.DEFECT, ExitCode.ENGINE_DIED}))
def test_every_code_of_ours_whose_cure_is_known_has_a_hint(code: ExitCode) -> None:
    assert hint_about({"exitCode": code.value}, "see the log") == HINTS[code]


@pytest.mark.parametrize("code", [1, 4, 77])
def test_any_other_code_is_explained_by_the_log(code: int) -> None:
    assert hint_about({"exitCode": code}, "see the log") == "see the log"
