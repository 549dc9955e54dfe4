"""Qwen3-Omni on vLLM, three processes for each stage that makes tokens: over the SDK, its speech is that of
transformers, and what a seed draws hangs on nothing else."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest
from openai import OpenAI

from tests.layout.source import CHECKOUT
from tests.support.draws import CODES, NEIGHBOURS, Speaker, assert_a_seed_draws_the_same
from tests.support.judges import ask
from tests.support.setups import SETUPS, Setups, example, several_setups
from tests.support.speech_chats import answered, asked, assert_same_sound, in_16_bits, samples, streamed_samples
from tests.support.thinker_chats import CHATS, PICTURE, SOUND, message

REFERENCE = CHECKOUT / "tests" / "models" / "ar_frames_reference.py"
WRITERS = ("thinker", "talker")
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


@pytest.fixture(scope="module")
def experts(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setups]:
    """The example, whose talkers' codes are an output of their own."""
    spec = example("tiny-qwen3-omni")
    for stage in spec["stages"]:
        if stage["name"] in WRITERS:
            stage["ar"] |= {"maxSequences": 1 + NEIGHBOURS, "kvCacheSize": "64Mi"}
        if stage["name"] == "talker":
            stage["output"] = {"modality": CODES}
    with several_setups("tiny-qwen3-omni", spec, WRITERS, tmp_path_factory.mktemp("experts"), models) as setups:
        yield setups


@pytest.fixture(scope="module")
def client(experts: Setups) -> OpenAI:
    """Of the setup with all replicas."""
    return client_of(experts, len(SETUPS) - 1)


def client_of(experts: Setups, setup: int) -> OpenAI:
    return OpenAI(base_url=f"{experts.urls[setup]}/v1", api_key="none", max_retries=0)


def test_speech_about_words_a_picture_and_sound_is_that_of_transformers_alone_and_at_once(
    client: OpenAI, expected: list[Any]
) -> None:
    with ThreadPoolExecutor() as clients:
        several = list(clients.map(lambda chat: samples(answered(client, message(chat), ASKED)), CHATS))
    alone = samples(answered(client, message(CHATS[0]), ASKED))
    for ours, theirs in zip([alone, *several], [expected[0], *expected], strict=True):
        assert_same_sound(ours, theirs)


@pytest.mark.parametrize("setup", [setup for setup, replicas in enumerate(SETUPS) if len(replicas) == 1])
def test_streamed_sound_is_that_of_the_whole_answer_for_words_that_were_drawn_too(experts: Setups, setup: int) -> None:
    """To the sample, where codes come to the codec in the same pieces: how sums round hangs on a piece's size."""
    client = client_of(experts, setup)
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
    experts: Setups,
) -> None:
    await assert_a_seed_draws_the_same(experts, DRAWS)
