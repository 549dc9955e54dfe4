"""A loaded model: vLLM's engine, and what turns payloads into its prompts and its steps into items."""

from collections.abc import Iterator
from contextlib import contextmanager

from omni_contract.wire.names import FINAL
from omni_runtime.engines.ar.answer import Answer
from omni_runtime.engines.ar.compat import Vllm
from omni_runtime.engines.ar.items import Spelling, TextItems
from omni_runtime.engines.ar.prompts import Prompt, Prompts
from omni_runtime.engines.ar.sampling import Sampling
from omni_runtime.engines.ar.settings import ArSettings
from omni_runtime.engines.ar.states import States
from omni_runtime.engines.protocol import StageRequest

FRAMES = (0,)
"""Frames come as the only layer."""
SELF_TEST = Prompt("prompt_token_ids", token_ids=(0,))


class LoadedModel:
    """Made on the engine's thread: that takes as long as loading the weights does. `part` is the family's, if any."""

    def __init__(self, settings: ArSettings) -> None:
        self.vllm = Vllm(settings.engine_arguments())
        self.part = None
        if settings.family is not None:
            self.part = settings.family.open(settings.part, settings.folder, settings.is_dummy)
        self._makes_frames = settings.model.makes_frames
        layers = FRAMES if self._makes_frames else settings.hidden_layers
        self.states = States(layers) if layers else None
        self.prompts = None if settings.model.takes_rows else self._prompts(settings)
        self._spelling = None if self.prompts is None else Spelling(self.prompts.tokenizer)

    async def open(self) -> None:
        """On the event loop, before the first request."""
        if self.states is not None:
            self.states.open()
        if self.states is not None and not self._makes_frames:
            await self.vllm.send_states(self.states.layers, self.states.address)
        if self.prompts is None:
            await self.vllm.take_rows(self.states.address if self.states and self._makes_frames else None)

    async def close(self) -> None:
        await self.vllm.stop_listening()
        if self.states is not None:
            await self.states.close()

    @contextmanager
    def answer(self, request: StageRequest, sampling: Sampling) -> Iterator[Answer]:
        """What leaves for the request, whose states are kept until the block ends."""
        top = sampling.get("logprobs")
        text = TextItems(self._spelling, top if isinstance(top, int) else None)
        if self.states is None or set(request.outputs) == {FINAL}:
            yield Answer(request.outputs, text, self.part)
            return
        with self.states.inbox() as inbox:
            yield Answer(request.outputs, text, self.part, inbox, self._makes_frames)

    def _prompts(self, settings: ArSettings) -> Prompts:
        vllm = self.vllm
        return Prompts(settings.folder, vllm.vocabulary_size, vllm.max_length, vllm.videos_need_metadata)

    async def run_self_test(self) -> None:
        """One token and how likely it was: what the first such request would wait for is made ready."""
        sampling: Sampling = {"max_tokens": 1, "ignore_eos": True, "logprobs": 1}
        async for _ in self.vllm.generate("self-test", SELF_TEST, sampling):
            pass
