"""Log lines carry the request they are about, in both formats."""

import asyncio
import json
import logging
import re
import sys
from collections.abc import Callable

import pytest

from omni_contract.wire.logs import JsonFormatter, TextFormatter, bind_log_fields, log_fields


def record(message: str = "step %d", *args: object, **extra: object) -> logging.LogRecord:
    return logging.makeLogRecord(
        {
            "name": "omni.test",
            "levelno": logging.INFO,
            "levelname": "INFO",
            "msg": message,
            "args": args or (3,),
            **extra,
        }
    )


def test_a_text_line_ends_with_its_fields_in_a_fixed_order():
    with log_fields(edge="a->b", request_id="r-1"):
        line = TextFormatter({"stage": "denoiser"}).format(record())
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO    omni.test step 3 request_id=r-1 stage=denoiser edge=a->b", line
    )


def test_a_json_line_holds_the_same_as_keys():
    with log_fields(request_id="r-1"):
        line = json.loads(JsonFormatter({"stage": "denoiser", "replica": "d-0"}).format(record()))
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "INFO",
        "logger": "omni.test",
        "message": "step 3",
        "request_id": "r-1",
        "stage": "denoiser",
        "replica": "d-0",
    }


@pytest.mark.parametrize("formatter", [TextFormatter, JsonFormatter])
def test_a_line_has_no_field_that_is_not_known(formatter: Callable[[dict[str, str]], logging.Formatter]):
    assert "request_id" not in formatter({}).format(record())


def test_a_lines_own_field_wins_over_the_tasks():
    with log_fields(request_id="outer"):
        assert "request_id=own" in TextFormatter({}).format(record(request_id="own"))


def test_a_formatted_error_keeps_its_traceback_and_its_request():
    try:
        raise ValueError("no such tensor")
    except ValueError:
        failure = record(exc_info=sys.exc_info())
    with log_fields(request_id="r-1"):
        line = json.loads(JsonFormatter({}).format(failure))
        text = TextFormatter({}).format(failure)
    assert line["request_id"] == "r-1" and line["error"].endswith("ValueError: no such tensor")
    assert text.splitlines()[0].endswith("request_id=r-1") and text.endswith("ValueError: no such tensor")


async def test_two_tasks_do_not_see_each_others_fields():
    formatter, lines = TextFormatter({}), []
    both_bound = asyncio.Barrier(2)

    async def log(request_id: str) -> None:
        with log_fields(request_id=request_id):
            await both_bound.wait()
            lines.append(formatter.format(record("of %s", request_id)))

    await asyncio.gather(log("r-1"), log("r-2"))
    assert sorted(line.partition("omni.test ")[2] for line in lines) == [
        "of r-1 request_id=r-1",
        "of r-2 request_id=r-2",
    ]


async def test_fields_bound_for_a_task_stay_with_it_and_its_children():
    formatter = TextFormatter({})

    async def child() -> str:
        return formatter.format(record())

    async def task() -> str:
        bind_log_fields(request_id="r-1")
        return await asyncio.create_task(child())

    assert "request_id=r-1" in await asyncio.create_task(task())
    assert "request_id" not in formatter.format(record())
