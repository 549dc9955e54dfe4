import signal

import pytest

from omni_runtime.local.process import describe_exit


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (3, "exited with code 3 (the engine cannot load)"),
        (6, "exited with code 6 (too little memory to load)"),
        (77, "exited with code 77"),
        (-signal.SIGKILL, "was killed by SIGKILL (out of memory, or kill -9)"),
        (-signal.SIGSEGV, "was killed by SIGSEGV"),
    ],
)
def test_an_exit_code_is_told_in_words(code: int, sentence: str) -> None:
    assert describe_exit(code) == sentence
