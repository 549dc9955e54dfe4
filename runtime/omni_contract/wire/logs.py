"""Log lines of all our processes: text or JSON, with request_id, stage and edge as fields.

A task binds its fields once (`log_fields`); every line logged below it carries them. A line adds its own by `extra`.
"""

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType

from omni_contract.wire.log_writer import PatientHandler

FIELDS = ("request_id", "stage", "edge", "replica", "frontend")
LEVELS = ("debug", "info", "warning", "error")
OURS = ("omni_contract", "omni_operator", "omni_runtime")
"""Whose lines a level below info lets through; the libraries' would bury them."""

_bound: ContextVar[Mapping[str, str]] = ContextVar("omni_log_fields", default=MappingProxyType({}))


def bind_log_fields(**fields: str) -> None:
    """Adds fields to every further line of this task and of the tasks that it starts."""
    _bound.set({**_bound.get(), **fields})


@contextmanager
def log_fields(**fields: str) -> Iterator[None]:
    """Adds fields to every line logged inside, in this task and in the tasks that it starts."""
    token = _bound.set({**_bound.get(), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


def configure_logging(as_json: bool = False, level: str = "info", **fields: str) -> PatientHandler:
    """Sends log lines from one of LEVELS on to standard error; `fields` (stage, replica) are on every line.

    Returns what writes them, for whoever has lines of other processes to pass on.
    """
    _skip_unused_record_fields()
    handler = PatientHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(fields) if as_json else TextFormatter(fields))
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=max(number, logging.INFO), handlers=[handler], force=True)
    for name in OURS:
        logging.getLogger(name).setLevel(number)
    return handler


def _skip_unused_record_fields() -> None:
    """Threads, processes and source lines are not in our format; finding them out is most of a line's cost."""
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # the switch that the logging HOWTO names


def fields_of(record: logging.LogRecord, process_fields: Mapping[str, str]) -> dict[str, str]:
    """The record's fields in a fixed order: the line's own before the task's before the process's."""
    own = {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
    known = {**process_fields, **_bound.get(), **own}
    return {name: str(known[name]) for name in FIELDS if known.get(name)}


class TextFormatter(logging.Formatter):
    """`TIME LEVEL LOGGER MESSAGE request_id=... stage=...`, for people."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__()
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={value}" for name, value in fields_of(record, self._fields).items())
        line = f"{_time_of(record)} {record.levelname:<7} {record.name} {record.getMessage()}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for log collectors."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__()
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time_of(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record, self._fields),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _time_of(record: logging.LogRecord) -> str:
    seconds = int(record.created)
    return f"{_second(seconds)}.{int((record.created - seconds) * 1000):03d}Z"


@lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
