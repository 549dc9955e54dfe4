"""`Omni` and `AsyncOmni` over real processes."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy
import psutil
import pytest

from omni_runtime import AsyncOmni, Omni, OmniRequestOutput
from omni_runtime.administration.asking import RefusedError
from omni_runtime.local.errors import InputError, StartError
from omni_runtime.offline.async_omni import NotRunningError
from tests.layout.source import CHECKOUT
from tests.local.conftest import fake_model_file
from tests.support.chat_client import EXPECTED_SECONDS, WORDS, expected_text
from tests.support.fake_omni import STEPS
from tests.support.local_models import EXAMPLE as PAINTER
from tests.support.reference_images import ReferenceRequest, reference_images
from tests.support.waiting import becomes

EXAMPLE = CHECKOUT / "examples" / "fake-omni.yaml"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = (CHECKOUT / "docs" / "offline.md").read_text()


@pytest.fixture(scope="module")
def omni() -> Iterator[Omni]:
    with Omni(EXAMPLE, {"models": "/tmp"}, allow_fake_engine=True) as running:
        yield running


def stages_of(process: psutil.Process) -> list[psutil.Process]:
    return [child for child in process.children() if "omni_runtime.worker" in " ".join(child.cmdline())]


def seconds(output: OmniRequestOutput) -> float:
    return len(output.audio) / output.sample_rate


def test_each_prompt_has_an_output_for_each_modality_in_order(omni: Omni) -> None:
    prompts = [f"{number} {WORDS}" for number in range(8)]
    outputs = omni.generate(prompts, seed=0)
    assert omni.modalities == ("text", "audio") and omni.stages == ("thinker", "talker", "vocoder")
    assert [output.final_output_type for output in outputs] == ["text", "audio"] * len(prompts)
    assert [output.text for output in outputs[::2]] == [expected_text(prompt) for prompt in prompts]
    assert [seconds(output) for output in outputs[1::2]] == [EXPECTED_SECONDS] * len(prompts)
    assert all(output.metrics and len(output.metrics.stages) == 3 for output in outputs)


def test_sampling_reaches_its_stage_and_unwanted_stages_do_not_run(omni: Omni) -> None:
    (short,) = omni.generate({"prompt": WORDS, "modalities": ["text"]}, [{"max_tokens": 2}, {}, {}], seed=0)
    assert short.text == expected_text(tokens=2)
    assert short.request_output[0].outputs[0].finish_reason == "length"
    assert short.metrics is not None and [stage.stage for stage in short.metrics.stages] == ["thinker"]


def test_a_generator_gives_the_same_one_by_one(omni: Omni) -> None:
    outputs = omni.generate([WORDS, WORDS], seed=0, py_generator=True)
    assert next(outputs).text == expected_text()
    assert [output.final_output_type for output in outputs] == ["audio", "text", "audio"]


def test_a_stage_that_is_killed_is_started_again() -> None:
    with Omni(EXAMPLE, {"models": "/tmp"}, allow_fake_engine=True) as omni:
        for worker in stages_of(psutil.Process()):
            if "vocoder.json" in " ".join(worker.cmdline()):
                worker.kill()
        (_, sound) = omni.generate(WORDS)
        assert seconds(sound) == EXPECTED_SECONDS


def test_stages_are_recorded_and_sleep_until_they_are_woken(tmp_path: Path) -> None:
    with Omni(EXAMPLE, {"models": "/tmp"}, allow_fake_engine=True, profile_dir=tmp_path) as omni:
        omni.start_profile(["thinker"])
        omni.generate(WORDS, seed=0)
        (trace,) = omni.stop_profile()
        assert Path(trace).is_file() and Path(trace).is_relative_to(tmp_path)
        omni.sleep()
        with pytest.raises(RefusedError, match="sleep"):
            omni.start_profile()
        omni.wake()
        assert omni.generate(WORDS, seed=0)[0].text == expected_text()
        with pytest.raises(InputError, match='did you mean "talker"'):
            omni.sleep(["taker"])


async def test_a_streamed_answer_is_the_whole_one_in_parts() -> None:
    async with AsyncOmni(EXAMPLE, {"models": "/tmp"}, allow_fake_engine=True) as omni:
        parts = [part async for part in omni.generate(WORDS, seed=0)]
        words, whole = await omni.generate_all([WORDS], seed=0, use_tqdm=False)
    texts = [part for part in parts if part.final_output_type == "text"]
    sounds = [part for part in parts if part.final_output_type == "audio"]
    assert len(texts) > 1 and len(sounds) > 1
    assert "".join(part.text for part in texts) == words.text == expected_text()
    assert numpy.array_equal(numpy.concatenate([part.audio for part in sounds]), whole.audio)
    assert [part.finished for part in texts].count(True) == 1 and texts[-1].finished
    with pytest.raises(NotRunningError):
        omni.generate(WORDS)


async def test_a_start_that_is_given_up_leaves_nothing_and_can_be_made_again() -> None:
    before = stages_of(psutil.Process())
    omni = AsyncOmni(EXAMPLE, {"models": "/tmp"}, allow_fake_engine=True)
    starting = asyncio.create_task(omni.start())
    assert await asyncio.to_thread(becomes, lambda: stages_of(psutil.Process()) != before, 30)
    await omni.close()
    with pytest.raises(NotRunningError, match="closed while it started"):
        await starting
    starting = asyncio.create_task(omni.start())
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert stages_of(psutil.Process()) == before
    async with omni:
        assert len(await omni.generate_all([WORDS], use_tqdm=False)) == 2


def test_pictures_equal_those_of_plain_diffusers(models: Path) -> None:
    prompts = ["a red fox", {"prompt": "a blue bird", "negative_prompt": "blurry"}]
    with Omni(PAINTER, {"models": models}) as omni:
        outputs = omni.generate(prompts, seed=3, width=64, height=64, num_inference_steps=3, true_cfg_scale=4.0)
    asked = [ReferenceRequest("a red fox", seed=3), ReferenceRequest("a blue bird", "blurry", seed=3)]
    for output, expected in zip(outputs, reference_images(models / "qwen-image", asked), strict=True):
        assert numpy.array_equal(numpy.asarray(output.images[0]), expected)


@pytest.mark.case("runtime:L2")
def test_nothing_outlives_the_process_that_uses_it() -> None:
    code = f"from omni_runtime import Omni; omni = Omni({str(EXAMPLE)!r}, {{'models': '/tmp'}}, allow_fake_engine=True)"
    ended = f"{code}\nprint(len(omni.generate('hi')))"
    waits = f"{code}\nprint('ready', flush=True); import time; time.sleep(600)"
    assert subprocess.run([sys.executable, "-c", ended], capture_output=True, check=True, timeout=60).stdout == b"2\n"
    with subprocess.Popen([sys.executable, "-c", waits], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        stages = stages_of(psutil.Process(process.pid))
        process.send_signal(signal.SIGKILL)
    assert len(stages) == 3
    assert becomes(lambda: not any(stage.is_running() for stage in stages), within_s=5)


def test_a_stage_that_cannot_start_ends_the_constructor_with_its_reason(tmp_path: Path) -> None:
    file, *_ = fake_model_file(tmp_path, denoiser="behavior: crash, crashAt: 0")
    before = stages_of(psutil.Process())
    with pytest.raises(StartError, match="denoiser did not start"):
        Omni(file, {"models": tmp_path}, allow_fake_engine=True)
    assert stages_of(psutil.Process()) == before


def test_a_file_that_cannot_run_here_is_refused_before_anything_starts() -> None:
    with pytest.raises(InputError, match="--volume models=DIR"):
        Omni(EXAMPLE, allow_fake_engine=True)


def test_the_entry_classes_need_no_torch() -> None:
    code = "import sys; from omni_runtime import AsyncOmni, Omni; print(Omni.__name__, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Omni", "False"]


@pytest.mark.parametrize("code", PYTHON.findall(PAGE), ids=lambda code: code.strip().splitlines()[-1].strip()[:40])
def test_the_code_of_the_page_runs_as_it_stands(code: str, tmp_path: Path, models: Path) -> None:
    shutil.copytree(CHECKOUT / "examples", tmp_path / "examples")
    (tmp_path / "models").symlink_to(models)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    printed, pictures = done.stdout, sorted(path.name for path in tmp_path.glob("*.png"))
    assert (
        pictures == ["picture-0.png", "picture-1.png"]
        or f"speaks for {EXPECTED_SECONDS}" in printed
        or (printed.count("text ") >= STEPS)
    ), printed
