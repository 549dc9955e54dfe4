"""Draws for whole prompts alone, in vLLM's process: what a seed makes does not depend on how a prompt was split.

vLLM draws for all requests of a step. It takes the draw of a prompt that is not whole yet back afterwards, by turning
its generator back. Generators of CPUs refuse that: the error would end the engine, and with it every request.
"""

from collections.abc import Callable
from typing import Any


class WholePrompts:
    """Takes the place of a model runner's sampling, the one that vLLM calls V1."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._sample: Callable[..., Any] = runner.sample_tokens
        runner.sample_tokens = self

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        batch = self._runner.input_batch
        parts = self._runner.discard_request_mask.np[: batch.num_reqs].nonzero()[0].tolist()
        unasked = {place: batch.generators.pop(place) for place in parts if place in batch.generators}
        try:
            return self._sample(*arguments, **named)
        finally:
            batch.generators.update(unasked)
