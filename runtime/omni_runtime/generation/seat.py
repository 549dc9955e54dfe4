"""One request's place in the generation engine: what waits to be decoded, and what waits to be taken."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

import torch

from omni_runtime.generation.decoder import Stream, Turn
from omni_runtime.stepping.batching import BatchShare
from omni_runtime.stepping.change import Change


class Seat:
    """Everything happens on the event loop. `on_work` is called when the next step may take the seat.

    It has one piece of sound at most that nobody has taken, so that a slow client slows its own request down.
    """

    def __init__(self, stream: Stream, frames_per_step: int | None, on_work: Callable[[], None]) -> None:
        self.ready_since: float | None = None
        """When the work came that no step has begun yet; None if there is none such."""
        self.share = BatchShare()
        self.turn = Turn(stream, None)
        """Its part of the step that has begun last."""
        self._stream = stream
        self._frames_per_step = frames_per_step
        self._on_work = on_work
        self._waiting: deque[torch.Tensor] = deque()
        self._frames = 0
        """Of all that waits."""
        self._lead_in = 0
        """How many of the first frames that wait make no samples."""
        self._is_ended = False
        self._is_in_step = False
        self._made: torch.Tensor | None = None
        self._error: BaseException | None = None
        self._change = Change()

    @property
    def batch_key(self) -> str:
        return self._stream.batch_key

    @property
    def is_ready(self) -> bool:
        return self._has_work and not self._is_in_step and self._made is None and self._error is None

    async def feed(self, codes: torch.Tensor, lead_in: int = 0) -> None:
        """Returns once there is room for more: when what waits is not enough for a step, or has been taken."""
        if lead_in:
            self._lead_in = self._frames + lead_in
        self._wait_with(codes)
        self._arrive()
        await self._change.until(lambda: not self._stream.has_work(self._frames, False))

    def end(self) -> None:
        """There are no more frames."""
        self._is_ended = True
        self._arrive()

    def fail(self, error: BaseException) -> None:
        """The request ends with the error; the first one counts."""
        self._error = self._error or error
        self._change.notify()

    async def sound(self) -> AsyncGenerator[torch.Tensor, None]:
        """Each piece as it is made; raises the error that ended the request."""
        while True:
            await self._change.until(lambda: self._made is not None or self._error is not None or self._is_done)
            if self._error is not None:
                raise self._error
            if self._made is None:
                return
            piece, self._made = self._made, None
            self._look()
            yield piece

    def begin(self) -> None:
        """Takes its part of the step that begins; `release` follows."""
        self._is_in_step = True
        self.ready_since = None
        codes = self._taken()
        lead_in = min(self._lead_in, 0 if codes is None else codes.shape[1])
        self._lead_in -= lead_in
        self.turn = Turn(self._stream, codes, lead_in)
        self._change.notify()

    def give(self, samples: torch.Tensor | None) -> None:
        """What the step made."""
        self._made = samples

    def release(self) -> None:
        """The step is over for it, however it ended."""
        self._is_in_step = False
        self._change.notify()

    async def left(self) -> None:
        """Returns once no step works for it any more."""
        await self._change.until(lambda: not self._is_in_step)

    @property
    def _has_work(self) -> bool:
        return self._stream.has_work(self._frames, self._is_ended)

    @property
    def _is_done(self) -> bool:
        return self._is_ended and not self._is_in_step and not self._has_work

    def _arrive(self) -> None:
        if self._has_work and self.ready_since is None:
            self.ready_since = asyncio.get_running_loop().time()
        self._look()

    def _look(self) -> None:
        if self._has_work:
            self._on_work()
        self._change.notify()

    def _taken(self) -> torch.Tensor | None:
        if not self._waiting:
            return None
        waiting = torch.cat(tuple(self._waiting), dim=1)
        self._waiting.clear()
        self._frames = 0
        limit = self._frames_per_step or waiting.shape[1]
        if waiting.shape[1] > limit:
            self._wait_with(waiting[:, limit:])
        return waiting[:, :limit]

    def _wait_with(self, codes: torch.Tensor) -> None:
        self._waiting.append(codes)
        self._frames += codes.shape[1]
