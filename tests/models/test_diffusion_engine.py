"""The diffusion engine as the worker drives it: admission, fairness, cancelling, failures, memory, start-up."""

import asyncio
import gc
import re
import shutil
import subprocess
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
import torch
from diffusers.modular_pipelines.modular_pipeline import BlockState, PipelineState
from safetensors.torch import load_file, save_file

from omni_contract.accelerators import Vendor
from omni_contract.api.v1alpha1 import DiffusionEngine as DiffusionBlock
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.engines.diffusion import create
from omni_runtime.engines.protocol import StageOutput, StageProgress, StageUsage
from omni_runtime.stepping.device import DeviceMissingError
from tests.models.engines import image, loaded, output, pixels, stage_file, stage_request
from tests.support.reference_images import ReferenceRequest, reference_images

QUICK = ReferenceRequest("a red fox", steps=2, width=32, height=32)
SLOW = replace(QUICK, steps=50)


def live_tensor_bytes() -> int:
    gc.collect()
    return sum(thing.nbytes for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor))


def live_states() -> int:
    """Without a collection first: what a request holds is freed at once, not at the collector's leisure."""
    return sum(type(thing) in (PipelineState, BlockState) for thing in gc.get_objects())


async def test_events_are_progress_per_step_then_the_output_then_usage(tiny_model):
    async with loaded(stage_file(tiny_model)) as engine:
        events = [event async for event in engine.run(stage_request(replace(QUICK, steps=3)))]
    assert [type(event) for event in events] == [StageProgress] * 3 + [StageOutput, StageUsage]
    assert [event.step for event in events[:3]] == [1, 2, 3]
    assert {event.total for event in events[:3]} == {3}
    usage = events[-1]
    assert (usage.steps, usage.output_tokens) == (3, 4)
    assert usage.input_tokens > 0
    assert usage.compute_seconds > 0


async def test_over_three_stages_every_token_is_counted_once(tiny_model):
    usages, inputs = [], None
    for phase in ("encode", "denoise", "decode"):
        async with loaded(stage_file(tiny_model, (phase,))) as engine:
            async for event in engine.run(stage_request(QUICK, inputs)):
                if isinstance(event, StageOutput):
                    inputs = {"edge": event.payload}
                elif isinstance(event, StageUsage):
                    usages.append(event)
    assert [usage.input_tokens > 0 for usage in usages] == [True, False, False]
    assert [usage.output_tokens for usage in usages] == [0, 4, 0]
    assert [usage.steps for usage in usages] == [0, 2, 0]


async def test_one_output_for_each_edge_that_is_asked_for(tiny_model):
    async with loaded(stage_file(tiny_model, ("encode",))) as engine:
        request = replace(stage_request(QUICK), outputs=("a->b", "a->c"))
        edges = [event.edge async for event in engine.run(request) if isinstance(event, StageOutput)]
    assert edges == ["a->b", "a->c"]


async def test_a_short_request_among_long_ones_ends_after_about_its_own_rounds(tiny_model):
    """Eight requests of 50 steps run; one of 2 steps needs 4 turns (encode, 2 steps, decode), so 4 rounds."""
    async with loaded(stage_file(tiny_model)) as engine:
        steps = [0] * 8
        all_run = asyncio.Event()

        async def long(position: int) -> None:
            async for event in engine.run(stage_request(replace(SLOW, seed=position))):
                steps[position] = event.step
                if min(steps) >= 3:
                    all_run.set()

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(long(position)) for position in range(8)]
            await all_run.wait()
            before = list(steps)
            await output(engine, stage_request(QUICK))
            passed = [after - was for after, was in zip(steps, before, strict=True)]
            for task in tasks:
                task.cancel()
    assert max(passed) <= 5
    assert max(passed) - min(passed) <= 1


async def test_encode_and_decode_requests_share_the_thread_one_turn_each(tiny_model):
    async with loaded(stage_file(tiny_model, ("encode",))) as engine:
        order: list[int] = []

        async def one(position: int) -> None:
            await output(engine, stage_request(QUICK))
            order.append(position)

        await asyncio.gather(*(one(position) for position in range(5)))
    assert order == [0, 1, 2, 3, 4]


@pytest.mark.case("runtime:L11", "runtime:M4")
async def test_requests_one_after_another_hold_no_more_than_the_first_ones(tiny_model):
    async with loaded(stage_file(tiny_model)) as engine:
        for width in (16, 32, 48):
            await output(engine, stage_request(replace(QUICK, width=width)))
        bytes_before, states_before = live_tensor_bytes(), live_states()
        for seed in range(1, 7):
            await output(engine, stage_request(replace(QUICK, seed=seed, width=16 + 16 * (seed % 3))))
        assert live_states() == states_before
        assert live_tensor_bytes() == bytes_before


@pytest.mark.parametrize("how", ["aclose", "cancel the reading task"])
async def test_cancelling_stops_within_one_step_and_frees_what_the_request_held(tiny_model, how):
    async with loaded(stage_file(tiny_model)) as engine:
        await output(engine, stage_request(QUICK))
        bytes_before, states_before = live_tensor_bytes(), live_states()
        seen: list[int] = []
        third_step = asyncio.Event()

        async def read() -> None:
            async with aclosing(engine.run(stage_request(SLOW))) as events:
                async for event in events:
                    seen.append(event.step)
                    if event.step == 3:
                        third_step.set()
                        if how == "aclose":
                            return

        task = asyncio.create_task(read())
        await third_step.wait()
        assert live_states() > states_before
        if how != "aclose":
            task.cancel()
        await asyncio.wait([task])
        turns = count_turns(engine)
        assert live_states() == states_before
        assert live_tensor_bytes() == bytes_before
        await output(engine, stage_request(QUICK))
        assert seen[-1] <= 5
        assert count_turns(engine) - turns == 2


def count_turns(engine) -> int:
    """Denoising steps so far, counted in the model itself."""
    transformer = engine._model.ready._blocks.transformer
    if not hasattr(transformer, "counted_steps"):
        transformer.counted_steps = 0
        transformer.register_forward_hook(lambda module, *_: setattr(module, "counted_steps", module.counted_steps + 1))
    return transformer.counted_steps


async def test_cancelling_one_of_many_leaves_the_others_exact(tiny_model):
    requests = [replace(QUICK, steps=12, seed=seed) for seed in range(4)]
    async with loaded(stage_file(tiny_model)) as engine:
        tasks = [asyncio.create_task(image([engine], request)) for request in requests]
        doomed = engine.run(stage_request(SLOW))
        assert (await anext(doomed)).step == 1
        await doomed.aclose()
        images = await asyncio.gather(*tasks)
    for ours, reference in zip(images, reference_images(tiny_model, requests), strict=True):
        numpy.testing.assert_array_equal(ours, reference)


@pytest.mark.case("runtime:A27")
async def test_requests_above_max_in_flight_are_refused_as_overloaded_and_a_slot_comes_back(tiny_model):
    async with loaded(stage_file(tiny_model, max_in_flight=2)) as engine:
        first, second = engine.run(stage_request(SLOW)), engine.run(stage_request(SLOW))
        await asyncio.gather(anext(first), anext(second))
        with pytest.raises(OmniError) as refused:
            await output(engine, stage_request(QUICK))
        assert refused.value.code is ErrorCode.OVERLOADED
        await first.aclose()
        assert await output(engine, stage_request(QUICK))
        await second.aclose()


@pytest.mark.parametrize(
    ("changes", "code", "param"),
    [
        ({"width": 40}, ErrorCode.INVALID_REQUEST, "width"),
        ({"steps": 0}, ErrorCode.INVALID_REQUEST, "steps"),
        ({"steps": 1}, ErrorCode.INVALID_REQUEST, "steps"),
        ({"seed": -1}, ErrorCode.INVALID_REQUEST, "seed"),
    ],
)
async def test_a_bad_request_fails_with_its_reason_and_hurts_no_neighbour(tiny_model, changes, code, param):
    good = [replace(QUICK, seed=seed) for seed in range(2)]
    async with loaded(stage_file(tiny_model)) as engine:
        bad = output(engine, stage_request(replace(QUICK, **changes)))
        first, failure, second = await asyncio.gather(
            image([engine], good[0]), bad, image([engine], good[1]), return_exceptions=True
        )
    assert isinstance(failure, OmniError)
    assert (failure.code, failure.param) == (code, param)
    for ours, reference in zip((first, second), reference_images(tiny_model, good), strict=True):
        numpy.testing.assert_array_equal(ours, reference)


def test_a_request_that_needs_more_memory_than_there_is_fails_alone(tiny_model, tmp_path):
    """In a process of its own with a limit: on a machine that overcommits, it would take the memory of all others."""
    out = tmp_path / "images.npz"
    command = [sys.executable, "-m", "tests.models.out_of_memory", str(tiny_model), str(out)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=root)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split()[-1] == ErrorCode.OUT_OF_MEMORY
    [reference] = reference_images(tiny_model, [QUICK])
    with numpy.load(out) as images:
        numpy.testing.assert_array_equal(images["beside"], reference)
        numpy.testing.assert_array_equal(images["after"], reference)


async def test_the_first_stage_needs_a_prompt(tiny_model):
    async with loaded(stage_file(tiny_model, ("encode",))) as engine:
        with pytest.raises(OmniError) as refused:
            await output(engine, stage_request(QUICK, {"": {}}))
    assert (refused.value.code, refused.value.param) == (ErrorCode.INVALID_REQUEST, "prompt")


async def test_a_payload_that_lacks_a_tensor_is_named(tiny_model):
    async with loaded(stage_file(tiny_model, ("decode",))) as engine:
        with pytest.raises(OmniError, match='lacks "latents"') as failed:
            await output(engine, stage_request(QUICK, {"edge": {}}))
    assert failed.value.code is ErrorCode.STAGE_FAILED


async def test_a_failed_request_frees_what_it_held(tiny_model):
    async with loaded(stage_file(tiny_model)) as engine:
        await output(engine, stage_request(QUICK))
        bytes_before, states_before = live_tensor_bytes(), live_states()
        with pytest.raises(OmniError):
            await output(engine, stage_request(replace(QUICK, steps=1)))
        assert live_states() == states_before
        assert live_tensor_bytes() == bytes_before


async def test_each_stage_loads_only_what_its_phases_need_and_says_so(tiny_model):
    lines: dict[str, list[str]] = {}
    for phase in ("encode", "denoise", "decode"):
        engine = create(stage_file(tiny_model, (phase,)))
        lines[phase] = []
        await engine.load(lines[phase].append)
        await engine.close()
    loaded = {phase: sorted(line.split()[1] for line in said if "loading" in line) for phase, said in lines.items()}
    assert loaded == {
        "encode": ["text_encoder", "tokenizer"],
        "denoise": ["scheduler", "transformer"],
        "decode": ["vae"],
    }
    first, figures, last = lines["decode"]
    assert (first, last) == ("loading vae 1/1", "running a self-test")
    assert re.fullmatch(r"loaded \d\S* GiB in \d+\.\d s", figures)


async def test_a_changed_weight_changes_the_picture(tiny_model, tmp_path):
    """So the equality tests can fail."""
    changed = tmp_path / "changed"
    shutil.copytree(tiny_model, changed)
    [file] = (changed / "transformer").glob("*.safetensors")
    weights = load_file(file)
    weights["proj_out.weight"][0, 0] += 0.5
    save_file(weights, file, metadata={"format": "pt"})
    request = replace(QUICK, steps=3)
    async with loaded(stage_file(changed)) as engine:
        ours = await image([engine], request)
    assert not numpy.array_equal(ours, reference_images(tiny_model, [request])[0])
    numpy.testing.assert_array_equal(ours, reference_images(changed, [request])[0])


@pytest.mark.case("runtime:L15")
@pytest.mark.parametrize(
    ("phase", "component"), [("encode", "text_encoder"), ("denoise", "transformer"), ("decode", "vae")]
)
async def test_the_self_test_finds_broken_weights_before_any_request(tiny_model, tmp_path, phase, component):
    broken = tmp_path / "broken"
    shutil.copytree(tiny_model, broken)
    [file] = (broken / component).glob("*.safetensors")
    weights = {name: torch.full_like(weight, float("nan")) for name, weight in load_file(file).items()}
    save_file(weights, file, metadata={"format": "pt"})
    engine = create(stage_file(broken, (phase,)))
    with pytest.raises(OmniError, match=f'phase "{phase}" made .* not finite'):
        await engine.load(lambda line: None)
    await engine.close()


async def test_a_folder_that_is_no_pipeline_is_refused_by_name(tmp_path):
    engine = create(stage_file(tmp_path))
    with pytest.raises(OmniError, match=r"has no model_index\.json"):
        await engine.load(lambda line: None)
    await engine.close()


async def test_a_checkpoint_of_another_pipeline_is_refused_by_name(tiny_model, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(tiny_model, other)
    index = other / "model_index.json"
    index.write_text(index.read_text().replace("QwenImagePipeline", "WanPipeline"))
    engine = create(stage_file(other, ("decode",)))
    with pytest.raises(OmniError, match='is of a "WanPipeline", but the model\'s family reads a "QwenImagePipeline"'):
        await engine.load(lambda line: None)
    await engine.close()


async def test_a_component_without_its_configuration_is_refused_by_name(tiny_model, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(tiny_model, broken)
    (broken / "transformer" / "config.json").unlink()
    engine = create(stage_file(broken, ("denoise",)))
    with pytest.raises(OmniError, match=r"config\.json"):
        await engine.load(lambda line: None)
    await engine.close()


async def test_dummy_weights_need_only_the_configurations(tiny_model, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(tiny_model, bare, ignore=shutil.ignore_patterns("*.safetensors"))
    async with loaded(stage_file(bare, load_format="dummy")) as engine:
        assert (await image([engine], QUICK)).shape == (32, 32, 3)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
async def test_a_narrow_dtype_travels_as_such_and_equals_plain_diffusers_in_it(tiny_model, dtype):
    request = replace(QUICK, negative_prompt=" ")
    payloads, inputs = [], None
    for phase in ("encode", "denoise", "decode"):
        async with loaded(stage_file(tiny_model, engine=DiffusionBlock(phases=(phase,), dtype=dtype))) as engine:
            payloads.append(await output(engine, stage_request(request, inputs)))
            inputs = {"edge": payloads[-1]}
    assert {array.dtype for array in payloads[0].values()} == {dtype, "int64"}
    assert payloads[1]["latents"].dtype == dtype
    numpy.testing.assert_array_equal(pixels(payloads[2]), reference_images(tiny_model, [request], dtype=dtype)[0])


async def test_dtype_auto_keeps_what_is_stored(tiny_model, tmp_path):
    narrow = tmp_path / "narrow"
    shutil.copytree(tiny_model, narrow)
    for file in narrow.rglob("*.safetensors"):
        weights = {name: weight.to(torch.bfloat16) for name, weight in load_file(file).items()}
        save_file(weights, file, metadata={"format": "pt"})
    async with loaded(stage_file(narrow, ("encode",))) as engine:
        payload = await output(engine, stage_request(QUICK))
    assert payload["prompt_embeds"].dtype == "bfloat16"


def test_a_vendor_whose_device_is_not_here_is_an_error_and_never_a_cpu_run(tiny_model):
    if torch.cuda.is_available():
        pytest.fail("this test is for machines without a GPU; the gpu level covers the others")
    with pytest.raises(DeviceMissingError, match=r'vendor "nvidia".*no "cuda" device'):
        create(stage_file(tiny_model, vendor=Vendor.NVIDIA))


def test_torch_computes_with_as_many_threads_as_the_environment_says():
    assert torch.get_num_threads() == 1


async def test_a_loaded_idle_engine_has_a_fresh_heartbeat_and_a_closed_one_none(tiny_model):
    engine = create(stage_file(tiny_model, ("decode",)))
    assert engine.heartbeat_age_s() == 0
    await engine.load(lambda line: None)
    assert engine.heartbeat_age_s() == 0
    await engine.close()
    with pytest.raises(Exception, match="has ended"):
        await anext(engine.run(stage_request(QUICK)))
