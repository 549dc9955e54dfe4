"""The generation engine as the worker drives it: batches, cancelling, failures, sleep, start-up."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from omni_contract.api.v1alpha1 import GenerationEngine as GenerationBlock
from omni_contract.wire.chunk import Chunk
from omni_contract.wire.errors import ErrorCode, OmniError, TransferError
from omni_runtime.engines.generation import create
from omni_runtime.engines.protocol import Profiles, Sleeps, StageItem, StageRequest, StageUsage
from omni_runtime.families.registry import NoSuchPartError
from omni_runtime.generation.engine import GenerationEngine
from tests.models.sounds import EDGE, Speech, codes_payload, loaded, off, pieces, samples_of, sound, stage_file

QUICK = Speech("qwen3-omni", 4)
SLOW = Speech("qwen2.5-omni", 8)
TOO_MANY = 16_385
"""Codes; the tiny token2wav makes mel for one less."""


async def steps_of(engine: GenerationEngine, request: StageRequest) -> int:
    usages = [event async for event in engine.run(request) if isinstance(event, StageUsage)]
    return usages[0].steps


@pytest.fixture
def codec(tiny_checkpoint):
    return stage_file("qwen3-omni", tiny_checkpoint("qwen3-omni"))


@pytest.fixture
def token2wav(tiny_checkpoint):
    return stage_file("qwen2.5-omni", tiny_checkpoint("qwen2.5-omni"))


async def test_the_engine_says_what_it_can(codec):
    engine = create(codec)
    assert isinstance(engine, Sleeps) and isinstance(engine, Profiles)


async def test_events_are_a_piece_for_each_edge_then_usage(codec):
    async with loaded(codec) as engine:
        events = [event async for event in engine.run(replace(QUICK.request(), outputs=("", "code2wav->next")))]
    assert [getattr(event, "edge", None) for event in events] == ["", "code2wav->next", None]
    usage = events[-1]
    assert usage.steps == 1
    assert usage.compute_seconds > 0


@pytest.mark.case("runtime:S6")
@pytest.mark.parametrize("family", ["qwen2.5-omni", "qwen3-omni"])
async def test_speech_without_a_code_is_a_sound_without_a_sample(family, tiny_checkpoint):
    async with loaded(stage_file(family, tiny_checkpoint(family))) as engine:
        assert [len(piece) for piece in await pieces(engine, Speech(family, 0).request())] == [0]
        assert [len(piece) for piece in await pieces(engine, Speech(family, 0).streamed([]))] == [0]


@pytest.mark.case("runtime:S14")
async def test_a_long_speech_is_decoded_in_bounded_steps(codec):
    async with loaded(codec) as engine:
        assert await steps_of(engine, Speech("qwen3-omni", 601).request()) == 3


class TestBatches:
    async def test_a_step_takes_as_many_as_may_share_it(self, codec, tmp_path):
        file = codec.model_copy(update={"max_batch_size": 4, "batch_timeout_s": 60.0})
        async with loaded(file) as engine:
            await engine.start_profile(tmp_path / "trace.json.gz", 100)
            requests = [Speech("qwen3-omni", frames).request() for frames in range(1, 9)]
            await asyncio.gather(*(sound(engine, request) for request in requests))
            profile = await engine.stop_profile()
        # Two full batches, and nobody waited a minute.
        assert profile is not None and profile.steps == 2

    async def test_one_alone_waits_no_longer_than_the_timeout(self, codec):
        file = codec.model_copy(update={"max_batch_size": 4, "batch_timeout_s": 0.05})
        async with loaded(file) as engine:
            began = asyncio.get_running_loop().time()
            await sound(engine, QUICK.request())
            assert asyncio.get_running_loop().time() - began >= 0.05

    async def test_speeches_at_unlike_steps_share_them(self, token2wav):
        """One joins while another is on its way, and both end as if alone."""
        async with loaded(token2wav) as engine:
            alone = [await sound(engine, speech.request()) for speech in (SLOW, Speech("qwen2.5-omni", 5, 1))]
            first = asyncio.create_task(sound(engine, SLOW.request(steps=30)))
            await asyncio.to_thread(lambda: None)
            second = await sound(engine, Speech("qwen2.5-omni", 5, 1).request())
            await first
        assert off(second, alone[1]) < 1e-5


class TestFailures:
    @pytest.mark.parametrize(
        ("payload", "words"),
        [
            pytest.param({"codes": "none"}, "of type str", id="no array"),
            pytest.param(codes_payload(torch.zeros(3, 5)), r"\(4, frames\)", id="another number of groups"),
            pytest.param(codes_payload(torch.full((4, 2), 64)), "64 to 64", id="beyond the codebook"),
            pytest.param(codes_payload(torch.full((4, 2), -1)), "-1 to -1", id="negative"),
            pytest.param({}, "NoneType", id="no codes"),
        ],
    )
    async def test_codes_that_the_codec_has_not_fail_their_request_alone(self, codec, payload, words):
        async with loaded(codec) as engine:
            expected = await sound(engine, QUICK.request())
            bad = replace(QUICK.request(), inputs={EDGE: payload})
            failure, good = await asyncio.gather(
                sound(engine, bad), sound(engine, QUICK.request()), return_exceptions=True
            )
        assert isinstance(failure, OmniError) and failure.code is ErrorCode.STAGE_FAILED
        with pytest.raises(OmniError, match=words):
            raise failure
        assert isinstance(good, torch.Tensor) and off(good, expected) < 1e-5

    async def test_a_voice_that_is_not_there_is_refused_with_those_that_are(self, token2wav):
        async with loaded(token2wav) as engine:
            with pytest.raises(OmniError, match="the voices are Chelsie, Ethan") as refused:
                await sound(engine, SLOW.request(voice="nobody"))
        assert (refused.value.code, refused.value.param) == (ErrorCode.INVALID_REQUEST, "voice")

    async def test_one_that_breaks_the_step_of_many_fails_alone(self, token2wav):
        file = token2wav.model_copy(update={"max_batch_size": 2, "batch_timeout_s": 60.0})
        async with loaded(file) as engine:
            breaking = sound(engine, Speech("qwen2.5-omni", TOO_MANY).request())
            failure, good = await asyncio.gather(breaking, sound(engine, SLOW.request(steps=2)), return_exceptions=True)
        assert isinstance(failure, OmniError) and failure.code is ErrorCode.INVALID_REQUEST
        assert isinstance(good, torch.Tensor) and len(good) == 8 * 480

    async def test_an_input_that_breaks_off_ends_the_request_with_its_reason(self, codec):
        async def broken() -> AsyncIterator[Chunk]:
            yield Chunk((codes_payload(QUICK.codes),))
            raise TransferError(ErrorCode.TRANSFER_FAILED, EDGE, "r")

        async with loaded(codec) as engine:
            request = replace(QUICK.request(), inputs={}, streams={EDGE: broken()})
            with pytest.raises(TransferError):
                await sound(engine, request)
            assert len(await sound(engine, QUICK.request())) > 0

    async def test_more_than_it_takes_at_once_are_refused(self, codec):
        file = codec.model_copy(update={"max_in_flight": 1})
        async with loaded(file) as engine, aclosing(engine.run(QUICK.request())) as events:
            await anext(events)
            with pytest.raises(OmniError, match="is full"):
                await sound(engine, QUICK.request())


class TestCancelling:
    async def test_a_request_whose_input_stalls_is_dropped_at_once(self, codec):
        async def stalled() -> AsyncIterator[Chunk]:
            yield Chunk((codes_payload(QUICK.codes),))
            await asyncio.Event().wait()

        async with loaded(codec) as engine:
            events = engine.run(replace(QUICK.request(), inputs={}, streams={EDGE: stalled()}))
            assert isinstance(await anext(events), StageItem)
            await events.aclose()
            assert engine._in_flight == 0
            assert engine._batches.places == ()
            assert engine.heartbeat_age_s() == 0

    async def test_a_long_one_ends_within_a_step(self, token2wav, tmp_path):
        async with loaded(token2wav) as engine:
            await engine.start_profile(tmp_path / "trace.json.gz", 10_000)
            task = asyncio.create_task(sound(engine, SLOW.request(steps=1000)))
            while (profile := engine._profile) is None or profile._steps < 3:
                await asyncio.to_thread(lambda: None)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            made = await engine.stop_profile()
            assert engine._batches.places == ()
        assert task.cancelled()
        assert made is not None and made.steps < 900

    @pytest.mark.case("runtime:S5")
    async def test_a_slow_client_slows_only_its_own_request(self, codec):
        """One piece waits for it and one is being made; the next step begins when it takes one."""
        long = Speech("qwen3-omni", 1201)
        async with loaded(codec) as engine, aclosing(engine.run(long.request())) as events:
            first = await anext(events)
            others = [await sound(engine, QUICK.request()) for _ in range(3)]
            (seat,) = engine._batches.places
            assert seat.share.steps == 2
            rest = [samples_of(event.payload) async for event in events if isinstance(event, StageItem)]
        assert all(len(other) for other in others)
        assert isinstance(first, StageItem)
        whole = torch.cat([samples_of(first.payload), *rest])
        assert len(whole) == 1201 * 1920 - 555


class TestModel:
    @pytest.mark.parametrize("level", [1, 2])
    @pytest.mark.parametrize("family", ["qwen2.5-omni", "qwen3-omni"])
    async def test_sound_after_waking_is_that_before(self, family, level, tiny_checkpoint):
        async with loaded(stage_file(family, tiny_checkpoint(family))) as engine:
            before = await sound(engine, Speech(family, 5).request())
            assert await engine.sleep(level) > 100_000
            await engine.wake(lambda line: None)
            assert off(await sound(engine, Speech(family, 5).request()), before) == 0

    async def test_a_voice_is_known_however_it_is_written_and_voices_sound_unlike(self, token2wav):
        async with loaded(token2wav) as engine:
            default, chelsie, ethan = [
                await sound(engine, SLOW.request(**voice)) for voice in ({}, {"voice": "CHELSIE"}, {"voice": "Ethan"})
            ]
        assert off(default, chelsie) == 0
        assert off(default, ethan) > 0.01

    async def test_a_stages_own_parameter_wins(self, token2wav):
        async with loaded(token2wav) as engine:
            plain = await sound(engine, SLOW.request(seed=7))
            own = await sound(engine, SLOW.request(**{"seed": 3, "code2wav.seed": 7, "talker.seed": 5}))
        assert off(plain, own) == 0

    async def test_a_request_may_ask_for_less_mel(self, token2wav):
        async with loaded(token2wav) as engine:
            assert len(await sound(engine, SLOW.request(max_mel_frames=6))) == 3 * 480

    @pytest.mark.parametrize("family", ["qwen2.5-omni", "qwen3-omni"])
    async def test_weights_can_be_made_up(self, family, tiny_checkpoint, tmp_path):
        ignored = shutil.ignore_patterns("*.safetensors", "*.pt")
        folder = Path(shutil.copytree(tiny_checkpoint(family), tmp_path / "dummy", ignore=ignored))
        async with loaded(stage_file(family, folder, load_format="dummy")) as engine:
            assert (await sound(engine, Speech(family, 3).request())).isfinite().all()

    async def test_a_checkpoint_that_lacks_weights_is_refused(self, tiny_checkpoint, tmp_path):
        folder = Path(shutil.copytree(tiny_checkpoint("qwen3-omni"), tmp_path / "model"))
        weights = load_file(folder / "model.safetensors")
        del weights["code2wav.decoder.0.conv.bias"]
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(OmniError, match=r'lacks 1 weights of "code2wav", among them decoder\.0\.conv\.bias'):
            async with loaded(stage_file("qwen3-omni", folder)):
                pass

    async def test_a_checkpoint_of_another_family_is_refused(self, tiny_checkpoint):
        with pytest.raises(OmniError, match='is of a "qwen2_5_omni", but the model\'s family reads a "qwen3_omni_moe"'):
            async with loaded(stage_file("qwen3-omni", tiny_checkpoint("qwen2.5-omni"))):
                pass

    async def test_token2wav_is_float32_only(self, tiny_checkpoint):
        file = stage_file("qwen2.5-omni", tiny_checkpoint("qwen2.5-omni"), engine=GenerationBlock(dtype="bfloat16"))
        with pytest.raises(OmniError, match="float32 only"):
            async with loaded(file):
                pass

    def test_a_family_without_a_codec_is_refused(self, tmp_path):
        with pytest.raises(NoSuchPartError, match="no generation stages"):
            create(stage_file("qwen-image", tmp_path))
