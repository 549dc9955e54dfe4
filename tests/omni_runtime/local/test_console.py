import json
from dataclasses import dataclass
from io import StringIO

from omni_runtime.local.console import CLEAR_LINE, Console


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


def console(**changes: bool) -> tuple[Console, StringIO, Clock]:
    stream, clock = StringIO(), Clock()
    return Console(stream, clock, name_width=8, **changes), stream, clock


def test_each_change_is_a_line_where_there_is_no_terminal() -> None:
    shown, stream, clock = console()
    shown.starting("denoiser")
    clock.now_s = 4.21
    shown.ready("denoiser")
    assert stream.getvalue().splitlines() == ["denoiser   starting", "denoiser   ready in 4.2 s"]


def test_log_lines_carry_the_stages_name() -> None:
    shown, stream, _ = console()
    shown.log("vae", "loading 1/2")
    assert stream.getvalue() == "vae      | loading 1/2\n"


def test_a_terminal_has_one_living_line_below_the_others() -> None:
    shown, stream, clock = console(is_terminal=True)
    shown.starting("denoiser")
    clock.now_s = 3
    shown.refresh()
    shown.log("denoiser", "reading")
    shown.ready("denoiser")
    assert stream.getvalue().split(CLEAR_LINE) == [
        "denoiser 0 s",
        "denoiser 3 s",
        "denoiser | reading\ndenoiser 3 s (reading)",
        "denoiser   ready in 3.0 s\n",
    ]


def test_the_living_line_never_wraps() -> None:
    shown, stream, _ = console(is_terminal=True)
    shown.columns = 20
    shown.starting("a-stage-with-a-long-name")
    assert len(stream.getvalue()) == 19


def test_json_logs_are_one_object_a_line_whoever_speaks() -> None:
    shown, stream, _ = console(log_json=True)
    shown.starting("denoiser")
    shown.log("denoiser", '{"stage": "denoiser", "message": "own"}')
    shown.log("denoiser", "Killed")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["message"] for line in lines] == ["starting", "own", "Killed"]
    assert {line["stage"] for line in lines} == {"denoiser"}
