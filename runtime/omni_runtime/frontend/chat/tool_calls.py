"""Finds calls of tools in what a model writes: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, as Qwen's do."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from omni_runtime.frontend.answers import Delta, Ended, SoundDelta, SoundEnd, TextDelta

BEGIN, END = "<tool_call>", "</tool_call>"


@dataclass(frozen=True)
class CalledTool:
    """`arguments` is JSON, as the official API has it."""

    name: str
    arguments: str


async def with_tool_calls(deltas: AsyncGenerator[Delta, None]) -> AsyncGenerator[Delta | CalledTool, None]:
    """Text without its calls, and the calls as they are complete. Text that may become one is kept back."""
    reader = ToolCallReader()
    async with aclosing(deltas):
        async for delta in deltas:
            match delta:
                case TextDelta():
                    is_last = delta.finish_reason is not None
                    text, calls = reader.read(delta.text, is_last)
                    for call in calls:
                        yield call
                    yield replace(delta, text=text)
                case SoundDelta() | SoundEnd() | Ended():
                    yield delta


class ToolCallReader:
    def __init__(self) -> None:
        self._kept = ""

    def read(self, text: str, is_last: bool) -> tuple[str, list[CalledTool]]:
        """What is certainly text, and the calls that are complete. At the end nothing is kept back."""
        self._kept += text
        said, calls = "", []
        while (begin := self._kept.find(BEGIN)) >= 0 and (end := self._kept.find(END, begin)) >= 0:
            block = self._kept[begin : end + len(END)]
            call = called(block[len(BEGIN) : -len(END)])
            said += self._kept[:begin] if call else self._kept[:begin] + block
            calls += [call] if call else []
            self._kept = self._kept[end + len(END) :]
        certain = len(self._kept) if is_last else _certain(self._kept)
        said, self._kept = said + self._kept[:certain], self._kept[certain:]
        return said, calls


def called(text: str) -> CalledTool | None:
    """None for what is no call: the client then sees what the model wrote."""
    try:
        call = json.loads(text)
    except ValueError:
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    return CalledTool(call["name"], arguments if isinstance(arguments, str) else json.dumps(arguments))


def _certain(text: str) -> int:
    """How many characters cannot belong to a call any more."""
    begin = text.find(BEGIN)
    if begin >= 0:
        return begin
    halves = (size for size in range(min(len(text), len(BEGIN) - 1), 0, -1) if BEGIN.startswith(text[-size:]))
    return len(text) - next(halves, 0)
