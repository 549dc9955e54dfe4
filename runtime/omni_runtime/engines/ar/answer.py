"""What leaves the stage for one request: an item for each step and edge, and what it took."""

from collections.abc import Mapping
from dataclasses import replace

from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Value
from omni_runtime.engines.ar.items import TextItems
from omni_runtime.engines.ar.states import Inbox, Layers
from omni_runtime.engines.ar.step import Step
from omni_runtime.engines.protocol import StageItem, StageUsage


class Answer:
    """`inbox` is where the request's hidden states come, if another stage wants them."""

    def __init__(self, edges: tuple[str, ...], text: TextItems, inbox: Inbox | None) -> None:
        self.usage = StageUsage()
        self._edges = edges
        self._text = text
        self._inbox = inbox

    @property
    def states_key(self) -> str | None:
        return None if self._inbox is None else self._inbox.key

    async def items(self, step: Step) -> list[StageItem]:
        self._count(step)
        text = self._text.item(step)
        if self._inbox is None:
            return [StageItem(edge, text) for edge in self._edges]
        # The token that a step makes is computed by the step after it: the last one has no states.
        states = await self._inbox.until(self.usage.input_tokens + self.usage.output_tokens - 1)
        whole = text | _told_to_stages(step, states)
        return [StageItem(edge, text if edge == FINAL else whole) for edge in self._edges]

    def _count(self, step: Step) -> None:
        self.usage = replace(
            self.usage,
            input_tokens=self.usage.input_tokens + len(step.prompt_token_ids or ()),
            output_tokens=self.usage.output_tokens + len(step.token_ids),
            steps=self.usage.steps + 1,
        )


def _told_to_stages(step: Step, states: Layers) -> dict[str, Value]:
    """`hidden` has the rows of each layer, by its number; the first item also has the prompt's."""
    hidden: Mapping[str, Value] = {str(layer): rows for layer, rows in states.items()}
    told: dict[str, Value] = {"hidden": hidden}
    if step.prompt_token_ids is not None:
        told["prompt_token_ids"] = list(step.prompt_token_ids)
    return told
