"""A log that nobody reads costs lines, never the process."""

import io
import logging
import os
import threading

import pytest

from omni_contract.wire.log_writer import PatientHandler


class StuckStream(io.StringIO):
    """Takes nothing until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()
        self.may_go_on = threading.Event()

    def write(self, text: str, /) -> int:
        self.is_asked.set()
        self.may_go_on.wait()
        return super().write(text)


def logger_of(handler: logging.Handler) -> logging.Logger:
    logger = logging.Logger("test")
    logger.addHandler(handler)
    return logger


def test_lines_are_written_in_order_by_the_time_the_handler_is_closed():
    stream = io.StringIO()
    handler = PatientHandler(stream)
    for number in range(100):
        logger_of(handler).info("line %d", number)
    handler.close()
    assert stream.getvalue().splitlines() == [f"line {number}" for number in range(100)]


def test_lines_of_others_keep_their_place_among_ours():
    stream = io.StringIO()
    handler = PatientHandler(stream)
    logger_of(handler).info("a stage ended")
    handler.pass_on("the stage's last words")
    logger_of(handler).info("its pod ends with it")
    handler.close()
    assert stream.getvalue().splitlines() == ["a stage ended", "the stage's last words", "its pod ends with it"]


def test_lines_that_nobody_reads_are_dropped_and_counted():
    stream = StuckStream()
    handler = PatientHandler(stream, most_lines=2)
    logger_of(handler).info("first")
    assert stream.is_asked.wait(5)
    for number in range(10):
        logger_of(handler).info("line %d", number)
    stream.may_go_on.set()
    handler.close()
    lines = stream.getvalue().splitlines()
    assert lines == ["first", "8 lines of log were dropped, as nobody read them", "line 0", "line 1"]


def test_a_reader_that_is_gone_hurts_nobody(capfd: pytest.CaptureFixture[str]):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w", closefd=True) as stream:
        handler = PatientHandler(stream)
        logger_of(handler).info("into the void")
        handler.close()
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    assert capfd.readouterr().err == ""
