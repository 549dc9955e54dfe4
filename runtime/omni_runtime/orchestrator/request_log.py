"""The one line that each request leaves in the frontend's log."""

import logging

from omni_contract.wire.errors import OmniError
from omni_runtime.orchestrator.states import SessionState

logger = logging.getLogger(__name__)


def log_end(request_id: str, state: SessionState, took_s: float, error: OmniError | None) -> None:
    if not logger.isEnabledFor(logging.INFO):
        return
    fields = {"request_id": request_id}
    if error is None:
        logger.info("request %s after %.3f s", state, took_s, extra=fields)
    else:
        logger.info("request %s after %.3f s: %s: %s", state, took_s, error.code, error.message, extra=fields)
