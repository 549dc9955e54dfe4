"""What vLLM makes of rows, as the stage sees it."""

from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import pytest

from omni_contract.wire.payload import Array
from omni_runtime.engines.ar.compat import Vllm
from omni_runtime.families.protocol import PromptRows

pytestmark = pytest.mark.models

STOP = 9


class Engine:
    """Makes these tokens, several of which are one output if nobody has taken them."""

    def __init__(self, *outputs: list[int]) -> None:
        self._outputs = outputs

    async def generate(self, *_: Any) -> AsyncGenerator[Any, None]:
        for token_ids in self._outputs:
            made = SimpleNamespace(token_ids=token_ids, text="", finish_reason=None, stop_reason=None, logprobs=None)
            yield SimpleNamespace(outputs=[made], prompt_token_ids=[0])


async def prompt() -> AsyncGenerator[PromptRows, None]:
    yield PromptRows((0,), Array("uint8", (1, 1), memoryview(b"0")))


async def steps(*outputs: list[int]) -> list[tuple[tuple[int, ...], str | None]]:
    vllm = Vllm.__new__(Vllm)
    vllm._llm = Engine(*outputs)
    made = vllm.generate_from_rows("r", prompt(), {"max_tokens": 4, "stop_token_ids": [STOP]})
    return [(step.token_ids, step.finish_reason) async for step in made]


@pytest.mark.parametrize("outputs", [([1], [2], [3], [4]), ([1, 2, 3, 4],), ([1], [2, 3], [4])])
async def test_each_token_is_a_step_of_its_own_however_late_its_reader_is(outputs: tuple[list[int], ...]):
    assert await steps(*outputs) == [((1,), None), ((2,), None), ((3,), None), ((4,), "length")]


async def test_the_token_that_ends_it_is_the_last():
    assert await steps([1, STOP]) == [((1,), None), ((STOP,), "stop")]
