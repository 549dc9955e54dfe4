"""Chat messages on their way to a template."""

from typing import Any

import pytest

from omni_contract.wire.errors import OmniError
from omni_runtime.engines.ar.messages import conversation_of, media_parts

PICTURE = {"type": "image", "image": "pixels"}
SOUND = {"type": "audio", "audio": "samples", "sample_rate": 16_000}


def text(words):
    return {"type": "text", "text": words}


def test_a_template_that_reads_parts_gets_placeholders_and_the_media_come_in_their_order():
    told = [{"role": "user", "content": [PICTURE, text("see"), SOUND]}, {"role": "user", "content": [PICTURE]}]
    conversation = conversation_of(told, reads_parts=True)
    assert conversation.messages == (
        {"role": "user", "content": [{"type": "image"}, text("see"), {"type": "audio"}]},
        {"role": "user", "content": [{"type": "image"}]},
    )
    assert conversation.media == (PICTURE, SOUND, PICTURE)


def test_a_template_of_text_alone_gets_the_text():
    conversation = conversation_of([{"role": "user", "content": [text("a"), text("b")]}], reads_parts=False)
    assert conversation.messages == ({"role": "user", "content": "a\nb"},)


def test_tool_calls_and_names_are_kept_and_content_may_be_absent():
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    told = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": [text("4")], "tool_call_id": "1"},
    ]
    first, second = conversation_of(told, reads_parts=False).messages
    assert first == {"role": "assistant", "content": "", "tool_calls": [call]}
    assert second == {"role": "tool", "content": "4", "tool_call_id": "1"}


@pytest.mark.parametrize(
    "told",
    [
        [],
        "hello",
        ["hello"],
        [{"content": []}],
        [{"role": "user", "content": "hello"}],
        [{"role": "user", "content": ["hello"]}],
        [{"role": "user", "content": [{"type": "text"}]}],
        [{"role": "user", "content": [{"type": "smell"}]}],
        [{"role": "user", "content": [PICTURE]}],
    ],
)
def test_what_a_template_of_text_cannot_take_is_refused_as_the_messages_fault(told):
    with pytest.raises(OmniError) as caught:
        conversation_of(told, reads_parts=False)
    assert caught.value.param == "messages"


@pytest.mark.parametrize("media", ["image", [{"type": "text", "text": "x"}], [7]])
def test_media_beside_a_prompt_must_be_parts_of_media(media: Any) -> None:
    with pytest.raises(OmniError, match="media must be"):
        media_parts(media)
    assert media_parts(None) == ()
