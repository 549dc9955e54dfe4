"""What leaves a stage for its edges when a part ends before it has made anything."""

import pytest

from omni_contract.wire.payload import Payload
from omni_runtime.engines.ar.answer import Answer
from omni_runtime.engines.ar.inbox import Inbox
from omni_runtime.engines.ar.items import TextItems
from omni_runtime.engines.ar.step import Step
from omni_runtime.engines.protocol import StageItem, StageNothing

EDGE = "talker->code2wav"


class Frames:
    """A part that makes frames."""

    stop_token_ids = ()

    def select(self, item: Payload) -> Payload:
        return {"codes": item["frames"]}


@pytest.mark.case("runtime:S6")
async def test_frames_that_never_come_are_told_to_the_edge_and_frames_that_do_are_not() -> None:
    inbox = Inbox((0,))
    answer = Answer(("", EDGE), TextItems(None, None), Frames(), inbox, makes_frames=True)
    [text] = await answer.items(Step(token_ids=(7,), text="", finish_reason="stop"))
    assert isinstance(text, StageItem) and text.edge == ""
    assert answer.end() == [StageNothing(EDGE)]
    inbox.add(0, 1, [memoryview(bytes(16))], ("int32", 4))
    items = await answer.items(Step(token_ids=(8,), text="", finish_reason="stop"))
    assert [item.edge for item in items] == ["", EDGE]
    assert answer.end() == []
