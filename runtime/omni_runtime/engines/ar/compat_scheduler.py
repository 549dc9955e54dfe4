"""The scheduler of vLLM 0.26 with what later ones do: each part of a streamed prompt makes as many tokens as it says.

Without it, every part would make as many as the first one, which is one.
"""

from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler


class PartBounds:
    def _update_request_as_session(self, session: Any, update: Any) -> None:
        super()._update_request_as_session(session, update)  # type: ignore[misc]
        session.max_tokens = update.max_tokens


class OneAfterAnother(PartBounds, Scheduler):  # type: ignore[misc]
    pass


class OneAhead(PartBounds, AsyncScheduler):  # type: ignore[misc]
    """A step is scheduled before the one before it has come back."""
