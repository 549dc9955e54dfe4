"""A loaded model: vLLM's engine, and what turns payloads into its prompts and its steps into items."""

from omni_contract.wire.payload import Value
from omni_runtime.engines.ar.compat import Vllm
from omni_runtime.engines.ar.items import Spelling, TextItems
from omni_runtime.engines.ar.prompts import Prompt, Prompts
from omni_runtime.engines.ar.sampling import Sampling
from omni_runtime.engines.ar.settings import ArSettings

SELF_TEST = Prompt("prompt_token_ids", token_ids=(0,))


class LoadedModel:
    """Made on the engine's thread: that takes as long as loading the weights does."""

    def __init__(self, settings: ArSettings) -> None:
        self.vllm = Vllm(settings.engine_arguments())
        self.prompts = Prompts(
            settings.folder, self.vllm.vocabulary_size, self.vllm.max_length, self.vllm.videos_need_metadata
        )
        self._spelling = Spelling(self.prompts.tokenizer)

    def text_items(self, logprobs: Value) -> TextItems:
        return TextItems(self._spelling, logprobs if isinstance(logprobs, int) else None)

    async def run_self_test(self) -> None:
        """One token and how likely it was: what the first such request would wait for is made ready."""
        sampling: Sampling = {"max_tokens": 1, "ignore_eos": True, "logprobs": 1}
        async for _ in self.vllm.generate("self-test", SELF_TEST, sampling):
            pass
