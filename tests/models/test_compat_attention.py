"""FlashAttention's plan in graphs that hold prompts: vLLM finds ours, and its bound is the graph's."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from vllm.config import CUDAGraphMode
from vllm.v1.attention.backends.flash_attn import FlashAttentionMetadataBuilder
from vllm.v1.attention.backends.registry import AttentionBackendEnum

import omni_runtime.engines.ar.compat_worker  # noqa: F401  it registers ours
from omni_runtime.engines.ar.compat_attention import CapturedAttention, PlanOfCaptured

pytestmark = pytest.mark.models


@dataclass(frozen=True)
class Step:
    """What a plan reads of a step."""

    num_actual_tokens: int = 64
    max_query_len: int = 1


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What vLLM's own builder is given as longest part, by the mode of its graphs. It needs a device to run."""
    monkeypatch.setattr(FlashAttentionMetadataBuilder, "build", lambda self, prefix, step, fast: step.max_query_len)

    def bound(mode: CUDAGraphMode) -> int:
        builder = PlanOfCaptured.__new__(PlanOfCaptured)
        builder.compilation_config = SimpleNamespace(cudagraph_mode=mode)
        return builder.build(0, Step())

    return bound


def test_vllm_takes_ours_for_its_flash_attention():
    backend = AttentionBackendEnum.FLASH_ATTN.get_class()
    assert backend is CapturedAttention and backend.get_builder_cls() is PlanOfCaptured
    assert backend.get_name() == "FLASH_ATTN"


@pytest.mark.parametrize(
    ("mode", "longest"),
    [
        (CUDAGraphMode.FULL, 64),
        (CUDAGraphMode.FULL_DECODE_ONLY, 1),
        (CUDAGraphMode.FULL_AND_PIECEWISE, 1),
        (CUDAGraphMode.NONE, 1),
    ],
)
def test_a_graph_that_holds_prompts_is_planned_by_its_size(bound: Any, mode: CUDAGraphMode, longest: int):
    assert bound(mode) == longest
