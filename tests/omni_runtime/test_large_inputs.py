"""Inputs of a client that are larger than a message, over the real orchestrator and a real worker."""

import asyncio
from pathlib import Path

from omni_contract.wire.payload import Array, Payload
from omni_runtime.frontend.media.settings import DEFAULTS
from omni_runtime.orchestrator.request import SessionRequest, SessionResult
from omni_runtime.transport.pipe import MESSAGE_LIMIT_BYTES
from tests.support.stage_servers import RunningModel, fake_model_of, running_model

REPEATS_ITS_INPUT = {"fake": {"behavior": "echo"}, "output": {"modality": "video"}}
RANDOM = bytes(range(251))


def clip(frames: int) -> Array:
    side = int(DEFAULTS.max_video_frame_pixels**0.5)
    size_bytes = frames * side * side * 3
    return Array("uint8", (frames, side, side, 3), memoryview(RANDOM * (size_bytes // len(RANDOM) + 1))[:size_bytes])


async def echoed(model: RunningModel, name: str, payload: Payload) -> SessionResult:
    return await model.orchestrator.run(SessionRequest(name, payload))


async def test_the_longest_clip_that_is_read_reaches_its_stage_whole_and_others_pass(tmp_path: Path) -> None:
    long, short = clip(DEFAULTS.max_video_frames), clip(1)
    assert len(long.data) > MESSAGE_LIMIT_BYTES
    async with running_model(fake_model_of({"thinker": REPEATS_ITS_INPUT}, []), tmp_path) as model:
        results = await asyncio.gather(
            echoed(model, "long", {"video": long}),
            echoed(model, "short", {"video": short}),
            echoed(model, "words", {"prompt": "a fox"}),
        )
        back = [result.outputs[0].payload for result in results]
    for sent, payload in zip((long, short), back, strict=False):
        video = payload["video"]
        assert isinstance(video, Array) and video.shape == sent.shape and video.data == sent.data
    assert back[2]["prompt"] == "a fox"
