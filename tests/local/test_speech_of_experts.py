"""Qwen3-Omni on vLLM, three processes for each stage that makes tokens: over the SDK, its speech is that of
transformers, and what a seed draws hangs on nothing else.

One replica of each of these stages hands on its answers whole, the others in chunks: a pair of them, or all of them, is
a model that is set up in its own way, and all ways cost one start.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import yaml
from openai import OpenAI

from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.resolve import ResolvedModel, resolve, stage_file
from omni_contract.wire.stage_table import StageTable
from omni_runtime.local.catalog import local_catalog
from omni_runtime.local.plan import STAGE_TABLE
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from tests.layout.source import CHECKOUT
from tests.support.draws import CODES, NEIGHBOURS, Speaker, assert_same, drawn
from tests.support.judges import ask
from tests.support.model_processes import NO_DEVICES, ModelProcesses, model_processes
from tests.support.speech_chats import answered, asked, assert_same_sound, in_16_bits, samples, streamed_samples
from tests.support.thinker_chats import CHATS, PICTURE, SOUND, message

REFERENCE = CHECKOUT / "tests" / "models" / "ar_frames_reference.py"
WRITERS = ("thinker", "talker")
REPLICAS = 3
WHOLE, IN_CHUNKS = 0, 1
"""Replicas of each, by how they hand on."""
START_S = 300
WORDS, TOKENS = 12, 21
SAMPLES_PER_FRAME, HELD_BACK = 1920, 555
"""The codec never makes the last samples, which the frame after would have been heard in."""
STAGES = [
    {"temperature": 0, "repetition_penalty": 1.0, "max_tokens": WORDS, "min_tokens": WORDS},
    {"temperature": 0, "max_tokens": TOKENS},
    {},
]
ASKED = asked("tiny-qwen3-omni", STAGES)
SAMPLED = asked("tiny-qwen3-omni", [STAGES[0], {"max_tokens": TOKENS}, {}])

DRAWS = Speaker(
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "over the lazy dog"}]}]},
    {
        "thinker.temperature": 0.9,
        "thinker.top_k": 40,
        "thinker.max_tokens": WORDS,
        "thinker.min_tokens": WORDS,
        "talker.max_tokens": TOKENS,
        "voice": "Ethan",
    },
)


@pytest.fixture(scope="module")
def expected(models: Path) -> list[Any]:
    """What transformers says in each chat, in 16 bits."""
    requests = [{"messages": [{"role": "user", "content": chat}], "voice": "Ethan"} for chat in CHATS]
    media, out = models / "heard.npz", models / "experts.npz"
    numpy.savez(media, picture=PICTURE, sound=SOUND)
    ask(REFERENCE, [models / "qwen3-omni", media, out], json.dumps(requests))
    with numpy.load(out) as made:
        return [in_16_bits(made[f"sound.{number}"]) for number in range(len(CHATS))]


@dataclass(frozen=True)
class Experts:
    """The running model. Its talkers' codes are an output of their own."""

    url: str
    table: StageTable


@pytest.fixture(scope="module")
def experts(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Experts]:
    folder = tmp_path_factory.mktemp("experts")
    with model_processes(experts_model(streams=True), folder, volumes=models) as processes:
        for stage in WRITERS:
            hand_on_whole_answers(processes, stage, folder)
        asyncio.run(processes.start(patience_s=START_S))
        yield Experts(processes.urls[0], StageTable.read((folder / STAGE_TABLE).read_bytes()))


def experts_model(streams: bool) -> ResolvedModel:
    """The example, with three replicas of each stage that makes tokens."""
    document = yaml.safe_load((CHECKOUT / "examples" / "tiny-qwen3-omni.yaml").read_text())["spec"]
    thinker, talker, _ = document["stages"]
    for stage in (thinker, talker):
        stage["replicas"] = REPLICAS
        stage["ar"] |= {"maxSequences": 1 + NEIGHBOURS, "kvCacheSize": "64Mi"}
    talker["output"] = {"modality": CODES}
    if not streams:
        whole = {"streaming": {"enabled": False}}
        document["edges"] = [
            {"from": "thinker", "to": "talker", **whole},
            {"from": "talker", "to": "code2wav", **whole},
        ]
    spec = OmniModelSpec.model_validate(document)
    return resolve("tiny-qwen3-omni", "default", spec, local_catalog(spec, NO_DEVICES, allow_fake_engine=False))


def hand_on_whole_answers(processes: ModelProcesses, stage: str, folder: Path) -> None:
    """The stage's first replica, by a stage file of its own."""
    plan, file, own = processes.plans[f"{stage}-{WHOLE}"], folder / f"{stage}.json", folder / f"{stage}-whole.json"
    revision = json.loads(file.read_text())["revision"]
    told = stage_file(experts_model(streams=False), stage, revision, str(folder / "volumes"))
    own.write_text(told.model_dump_json(by_alias=True))
    arguments = tuple(str(own) if argument == str(file) else argument for argument in plan.arguments)
    assert arguments != plan.arguments
    processes.plans[plan.name] = replace(plan, arguments=arguments)


@pytest.fixture(scope="module")
def client(experts: Experts) -> OpenAI:
    return OpenAI(base_url=f"{experts.url}/v1", api_key="none", max_retries=0)


@asynccontextmanager
async def model_of(experts: Experts, *replicas: int) -> AsyncIterator[Orchestrator]:
    """These replicas alone of each stage that makes tokens, for a frontend of the test's own."""
    rows = {stage.name: stage for stage in experts.table.stages}
    for name in WRITERS:
        addresses = tuple(rows[name].addresses[number] for number in replicas)
        rows[name] = rows[name].model_copy(update={"addresses": addresses})
    table = experts.table.model_copy(update={"stages": tuple(rows.values())})
    orchestrator = Orchestrator(table, LocalDiscovery(table), OrchestratorSettings(f"frontend-of-{replicas}"))
    async with orchestrator.running():
        await orchestrator.wait_ready()
        yield orchestrator


def test_speech_about_words_a_picture_and_sound_is_that_of_transformers_alone_and_at_once(
    client: OpenAI, expected: list[Any]
) -> None:
    with ThreadPoolExecutor() as clients:
        several = list(clients.map(lambda chat: samples(answered(client, message(chat), ASKED)), CHATS))
    alone = samples(answered(client, message(CHATS[0]), ASKED))
    for ours, theirs in zip([alone, *several], [expected[0], *expected], strict=True):
        assert_same_sound(ours, theirs)


def test_streamed_sound_is_that_of_the_whole_answer_for_words_that_were_drawn_too(client: OpenAI) -> None:
    for request in (ASKED, SAMPLED):
        whole = samples(answered(client, message(CHATS[1]), request))
        assert streamed_samples(client, message(CHATS[1]), request).tolist() == whole.tolist()


def test_an_answer_has_text_and_sound_and_counts_both(client: OpenAI) -> None:
    answer = answered(client, message(CHATS[0]), ASKED)
    audio = answer.choices[0].message.audio
    assert audio is not None and audio.transcript
    assert answer.usage is not None and answer.usage.completion_tokens_details is not None
    spoken = answer.usage.completion_tokens_details.audio_tokens
    assert spoken == (len(samples(answer)) + HELD_BACK) / SAMPLES_PER_FRAME
    assert answer.usage.completion_tokens == WORDS + spoken


def test_text_alone_keeps_the_talker_silent(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny-qwen3-omni", messages=[{"role": "user", "content": "hello"}], modalities=["text"], max_tokens=5
    )
    assert answer.choices[0].message.audio is None
    assert answer.usage is not None and answer.usage.completion_tokens == 5


@pytest.mark.case("runtime:B7")
async def test_a_seed_draws_the_same_in_ten_runs_and_a_crowd_over_one_replica_and_three_in_chunks_and_whole(
    experts: Experts,
) -> None:
    setups = ((WHOLE,), (IN_CHUNKS,), range(REPLICAS))
    made = []
    for replicas in setups:
        async with model_of(experts, *replicas) as model:
            made.append(await drawn(model, DRAWS))
    first, *_ = made[0][0]
    for ours, neighbours in made:
        for each in ours:
            assert_same(each, first)
        for one, other in zip(neighbours, made[0][1], strict=True):
            assert_same(one, other)
    others = made[0][1]
    assert len({one.words for one in others} - {first.words}) > NEIGHBOURS // 2
    assert len({one.codes for one in others} - {first.codes}) > NEIGHBOURS // 2
    for stage in WRITERS:
        assert len({one.replicas[stage] for answers in made[2] for one in answers}) == REPLICAS
