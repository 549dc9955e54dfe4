"""What leaves the stage for one request: an item for each step and edge, and what it took."""

from time import perf_counter

from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Payload, Value
from omni_runtime.engines.ar.inbox import Inbox
from omni_runtime.engines.ar.items import TextItems
from omni_runtime.engines.ar.step import Step
from omni_runtime.engines.protocol import StageItem, StageNothing, StageUsage
from omni_runtime.families.protocol import ArPart


class Answer:
    """`part` selects what other stages get; `inbox` is where the request's hidden states or frames come, if any do."""

    def __init__(
        self,
        edges: tuple[str, ...],
        text: TextItems,
        part: ArPart | None,
        inbox: Inbox | None = None,
        makes_frames: bool = False,
    ) -> None:
        self._edges = edges
        self._text = text
        self._part = part
        self._inbox = inbox
        self._makes_frames = makes_frames
        self._input_tokens = 0
        self._tokens = 0
        self._frames_left = 0
        self._steps = 0
        self._batch_size = 1
        self._postprocess_s = 0.0
        self._silent = {edge for edge in edges if edge != FINAL}
        """The edges that have got nothing yet."""

    @property
    def usage(self) -> StageUsage:
        """So far. Of a part that makes frames, those count that have left."""
        return StageUsage(
            input_tokens=self._input_tokens,
            output_tokens=self._frames_left if self._makes_frames else self._tokens,
            steps=self._steps,
            postprocess_seconds=self._postprocess_s,
            batch_size=self._batch_size,
        )

    @property
    def states_key(self) -> int | None:
        return None if self._inbox is None else self._inbox.key

    def shared(self, requests: int) -> None:
        """So many requests, this one included, are with vLLM now."""
        self._batch_size = max(self._batch_size, requests)

    async def items(self, step: Step) -> list[StageItem]:
        began = perf_counter()
        text = self._text.item(step)
        self._tokens += len(step.token_ids)
        self._input_tokens += len(step.prompt_token_ids or ())
        self._steps += 1
        self._postprocess_s += perf_counter() - began
        is_last = step.finish_reason is not None
        if set(self._edges) == {FINAL}:
            return [StageItem(FINAL, text, is_last)]
        told = await (self._frames() if self._makes_frames else self._told_to_stages(step, text))
        if told is None:
            return [StageItem(FINAL, text, is_last)] if FINAL in self._edges else []
        self._silent.clear()
        return [StageItem(edge, text if edge == FINAL else told, is_last) for edge in self._edges]

    def end(self) -> list[StageNothing]:
        """Of a part whose first token has ended it no frame has come."""
        return [StageNothing(edge) for edge in self._silent]

    async def _told_to_stages(self, step: Step, text: Payload) -> Payload:
        told: dict[str, Value] = {**text}
        if step.prompt_token_ids is not None:
            told["prompt_token_ids"] = list(step.prompt_token_ids)
        if self._inbox is not None:
            # The token that a step makes is computed by the step after it: the last one has no states.
            states = await self._inbox.until(self._input_tokens + self._tokens - 1)
            told["hidden"] = {str(layer): rows for layer, rows in states.items()}
            if step.prompt_token_ids is not None and self._inbox.positions is not None:
                told["prompt_positions"] = self._inbox.positions
        return told if self._part is None else self._part.select(told)

    async def _frames(self) -> Payload | None:
        """None if the step has brought none: a token's frame comes with the step after it, the last one's never."""
        assert self._inbox is not None and self._part is not None
        made = await self._inbox.until(self._tokens - 1)
        frames = next(iter(made.values()), None)
        if frames is None or not frames.size_bytes:
            return None
        self._frames_left += frames.shape[0]
        return self._part.select({"frames": frames})
