import io

from omni_runtime.offline.progress import Progress


def told(is_terminal: bool, times_s: list[float], failures: int = 0) -> str:
    stream, clock = io.StringIO(), iter([0.0, *times_s])
    progress = Progress(len(times_s), stream, lambda: next(clock), is_terminal)
    for number in range(len(times_s)):
        progress.answered(has_failed=number < failures)
    return stream.getvalue()


def test_a_terminal_sees_one_line_that_changes() -> None:
    first, last = told(True, [1.0, 2.0]).split("\r\x1b[K")[1:]
    assert first == "prompts 1/2 in 1.0 s, 1.00/s, about 1 s left"
    assert last == "prompts 2/2 in 2.0 s, 1.00/s\n"


def test_quick_answers_do_not_redraw_it_each_time() -> None:
    assert told(True, [1.0, 1.01, 1.02, 1.03]).count("\r") == 2


def test_a_file_gets_the_last_state_alone() -> None:
    assert told(False, [1.0, 2.0], failures=1) == "prompts 2/2 in 2.0 s, 1.00/s, 1 failed\n"
