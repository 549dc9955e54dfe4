"""Tells what each session took, as the settings ask: as tables in the log, as lines in files."""

import logging
from datetime import UTC, datetime

from omni_runtime.orchestrator import Session
from omni_runtime.statistics.files import StatsFiles
from omni_runtime.statistics.of_session import FINISHED, stats_of
from omni_runtime.statistics.settings import StatsSettings
from omni_runtime.statistics.table import request_table

logger = logging.getLogger(__name__)


class Telling:
    """Of one frontend. Raises StatsFilesError if the folder cannot be used."""

    def __init__(self, settings: StatsSettings, frontend_id: str) -> None:
        self._is_logged = settings.is_logged
        self.files = None if settings.directory is None else StatsFiles(settings.directory, frontend_id)

    def session_ended(self, session: Session) -> None:
        stats = stats_of(session)
        if self._is_logged and stats.outcome == FINISHED:
            logger.info("statistics\n%s", request_table(stats), extra={"request_id": stats.request_id})
        if self.files is not None:
            self.files.add(stats, datetime.now(UTC))

    def close(self) -> None:
        if self.files is not None:
            self.files.close()
