"""FlashAttention in graphs that hold prompts, too: a seam inside vLLM's own processes. vLLM imports it by name there.

FlashAttention 3 is planned for each step outside of its graph, by the longest part that the step has of a request. A
graph is captured for another longest part, so its kernels read the plan otherwise than it was made, and the tokens of
requests that share a step come out wrong. Here both go by the same bound, which a graph's size gives.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any

from vllm.v1.attention.backends.flash_attn import FlashAttentionBackend, FlashAttentionMetadataBuilder


class PlanOfCaptured(FlashAttentionMetadataBuilder):  # type: ignore[misc]
    """Plans a step as its graph was captured, if there are graphs for prompts."""

    @cached_property
    def _holds_prompts(self) -> bool:
        """Asked at each step, and settled before the first."""
        mode = self.compilation_config.cudagraph_mode
        return bool(mode.has_full_cudagraphs() and not mode.separate_routine())

    def build(self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False) -> Any:
        if self._holds_prompts:
            # No part is longer than all of the step, padded to its graph's size.
            longest = common_attn_metadata.num_actual_tokens
            common_attn_metadata = replace(common_attn_metadata, max_query_len=longest)
        return super().build(common_prefix_len, common_attn_metadata, fast_build)


class CapturedAttention(FlashAttentionBackend):  # type: ignore[misc]
    """Takes the place of vLLM's own, under its name."""

    @staticmethod
    def get_builder_cls() -> type[PlanOfCaptured]:
        return PlanOfCaptured
