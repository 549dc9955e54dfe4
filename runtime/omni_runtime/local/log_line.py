"""A process's JSON log line, made short for a person: the supervisor already says which stage it is from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

QUIET_LEVEL = "INFO"


@dataclass(frozen=True)
class LogLine:
    message: str
    """Without time and fields: what the living line shows."""
    text: str


def read_log_line(line: str) -> LogLine:
    """What is no JSON object (a traceback, a library's own print) stays as it is."""
    try:
        record = json.loads(line)
    except ValueError:
        return LogLine(line, line)
    if not isinstance(record, dict) or not isinstance(record.get("message"), str):
        return LogLine(line, line)
    return LogLine(record["message"], _short(record))


def _short(record: Mapping[str, object]) -> str:
    clock = str(record.get("time", ""))[11:19]
    level = "" if record.get("level") == QUIET_LEVEL else f" {record.get('level')}:"
    request = f" ({record['request_id']})" if "request_id" in record else ""
    error = f"\n{record['error']}" if "error" in record else ""
    return f"{clock}{level} {record['message']}{request}{error}"
