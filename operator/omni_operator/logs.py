"""Log lines of the operator: text for people, JSON for machines."""

import json
import logging
import sys

from omni_contract.wire.log_writer import PatientHandler
from omni_operator.settings import LogSettings

CHATTY = ("kopf", "aiohttp.access")
"""Loggers of libraries that report every object and every probe."""


class JsonLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logs(settings: LogSettings) -> None:
    handler = PatientHandler(sys.stderr)
    if settings.format == "json":
        handler.setFormatter(JsonLine())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
