"""A loaded model: vLLM's engine, and what turns payloads into its prompts and its steps into items."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from omni_contract.wire.names import FINAL
from omni_runtime.engines.ar.answer import Answer
from omni_runtime.engines.ar.compat import Vllm
from omni_runtime.engines.ar.items import Spelling, TextItems
from omni_runtime.engines.ar.prompts import Prompt, Prompts
from omni_runtime.engines.ar.sampling import Sampling, sampling_of
from omni_runtime.engines.ar.settings import ArSettings
from omni_runtime.engines.ar.states import States
from omni_runtime.engines.protocol import StageRequest

FRAMES = (0,)
"""Frames come as the only layer."""
FIRST_SAMPLING: Sampling = {"max_tokens": 1, "logprobs": 1}
TOP_P: Sampling = {"temperature": 1.0, "top_k": 0, "top_p": 0.9}
SEVERAL = 8
"""Requests from which on vLLM samples with kernels of its own."""
PROMPTS = (24, 48, 96, 192, 384, 768, 1536, 3072, 6144)
"""Their lengths: experts have a kernel for each of a few sizes of a step, which is built when it is met."""


class LoadedModel:
    """Made on the engine's thread: that takes as long as loading the weights does. `part` is the family's, if any."""

    def __init__(self, settings: ArSettings) -> None:
        self.vllm = Vllm(settings.engine_arguments())
        self.part = None
        if settings.family is not None:
            self.part = settings.family.open(settings.part, settings.folder, settings.is_dummy)
        self._makes_frames = settings.model.makes_frames
        layers = FRAMES if self._makes_frames else settings.hidden_layers
        self.states = States(layers, self.vllm.sockets) if layers else None
        self.prompts = None if settings.model.takes_rows else self._prompts(settings)
        self._is_on_cpu = settings.is_on_cpu
        self._defaults = sampling_of(settings.model.defaults)
        self._several = min(SEVERAL, settings.block.max_sequences)
        self._prompt_lengths = [length for length in PROMPTS if length < self.vllm.max_length]
        self._spelling = None if self.prompts is None else Spelling(self.prompts.tokenizer)

    async def open(self) -> None:
        """On the event loop, before the first request."""
        if self.states is not None:
            self.states.open()
        if self.states is not None and not self._makes_frames:
            await self.vllm.send_states(self.states.layers, self.states.way)
        if self.prompts is None:
            await self.vllm.take_rows(self.states.way if self.states and self._makes_frames else None)

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
        """What the first requests would wait for is made ready: kernels are built for some ways of sampling alone."""
        await self._sampled("self-test", FIRST_SAMPLING)
        if self._is_on_cpu:
            return
        for length in self._prompt_lengths:
            await self._sampled(f"self-test-of-{length}", {"max_tokens": 1}, length)
        for kind, sampling in enumerate((self._defaults, TOP_P)):
            several = (self._sampled(f"self-test-{kind}-{number}", sampling) for number in range(self._several))
            await asyncio.gather(*several)

    async def _sampled(self, name: str, sampling: Sampling, length: int = 1) -> None:
        prompt = Prompt("prompt_token_ids", token_ids=(0,) * length)
        async for _ in self.vllm.generate(name, prompt, {"ignore_eos": True, "max_tokens": 4, **sampling}):
            pass
