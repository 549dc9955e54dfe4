"""Calls of tools in what a model writes: found wherever the text is cut, and never anything else."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_runtime.frontend.chat.tool_calls import CalledTool, ToolCallReader, called

LOOK = '<tool_call>\n{"name": "look", "arguments": {"at": "fox"}}\n</tool_call>'
CALL = CalledTool("look", '{"at": "fox"}')


def read(*pieces: str) -> tuple[str, list[CalledTool]]:
    reader, said, calls = ToolCallReader(), "", []
    for number, piece in enumerate(pieces):
        text, found = reader.read(piece, is_last=number == len(pieces) - 1)
        said, calls = said + text, calls + found
    return said, calls


@given(st.lists(st.integers(0, 200), max_size=12))
def test_a_call_is_found_however_the_text_is_cut(cuts: list[int]) -> None:
    text = f"I look. {LOOK} and{LOOK} < done <tool"
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[begin:end] for begin, end in itertools.pairwise(places)]
    assert read(*pieces) == ("I look.  and < done <tool", [CALL, CALL])


def test_text_that_cannot_become_a_call_is_not_kept_back() -> None:
    reader = ToolCallReader()
    assert reader.read("a <b> c <tool", is_last=False) == ("a <b> c ", [])
    assert reader.read("box>", is_last=False) == ("<toolbox>", [])


@pytest.mark.parametrize("inside", ["no json", "[1]", '{"arguments": {}}', '{"name": 5}', ""])
def test_what_is_no_call_stays_text(inside: str) -> None:
    block = f"<tool_call>{inside}</tool_call>"
    assert read(f"x{block}y") == (f"x{block}y", [])


def test_a_call_that_never_ends_is_text_in_the_end() -> None:
    assert read("<tool_call>", '{"name"') == ('<tool_call>{"name"', [])


def test_arguments_are_json_whether_the_model_wrote_them_as_a_map_or_as_text() -> None:
    assert called('{"name": "a", "arguments": "{\\"b\\": 1}"}') == CalledTool("a", '{"b": 1}')
    assert called('{"name": "a"}') == CalledTool("a", "{}")
