"""One speech's place in the talker engine: what it has said and nobody has taken yet. All on the event loop."""

from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any

from omni_contract.wire.payload import Payload
from omni_runtime.stepping.batching import BatchShare
from omni_runtime.stepping.change import Change

ITEMS_AHEAD = 8
"""That a speech may be ahead of its reader: enough for readers who are on their way not to miss the next step."""


class Seat:
    """A speech that waits for its words is not ready, and costs others nothing. `on_change` follows what may end that.

    The step that reads its prompt is its own; from then on, all that can share a step do.
    """

    def __init__(self, speech: Any, shares: bool, can_speak: Callable[[], bool], on_change: Callable[[], None]) -> None:
        self.ready_since: float | None = None
        self.speech = speech
        self.share = BatchShare()
        self.frames = 0
        self._shares = shares
        self._can_speak = can_speak
        self._on_change = on_change
        self._said: deque[Payload] = deque()
        self._is_in_step = False
        self._has_ended = False
        self._error: BaseException | None = None
        self._change = Change()

    @property
    def batch_key(self) -> str:
        return "" if self._shares and self.share.steps else f"alone {id(self)}"

    @property
    def is_ready(self) -> bool:
        is_going = not (self._is_in_step or self._has_ended or self._error)
        return is_going and len(self._said) < ITEMS_AHEAD and self._can_speak()

    def heard(self) -> None:
        """There are more words, or there will be none."""
        self._on_change()

    def fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._change.notify()

    def begin(self) -> None:
        self._is_in_step = True

    def give(self, item: Payload | None) -> None:
        """What the step made; None if the speech has ended."""
        if item is None:
            self._has_ended = True
        else:
            self._said.append(item)
            self.frames += 1

    def release(self) -> None:
        self._is_in_step = False
        self._change.notify()

    async def items(self) -> AsyncGenerator[Payload, None]:
        """Each as it is made; raises the error that ended the request."""
        while True:
            await self._change.until(lambda: bool(self._said) or self._has_ended or self._error is not None)
            if self._error is not None:
                raise self._error
            if not self._said:
                return
            item = self._said.popleft()
            self._on_change()
            yield item

    async def left(self) -> None:
        """Returns once no step works for it any more."""
        await self._change.until(lambda: not self._is_in_step)
