"""Qwen2.5-Omni behind `omni serve`, from a file of ours and from an old one: its speech is that of transformers."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from tests.layout.source import CHECKOUT
from tests.support.draws import NEIGHBOURS, RUNS, SEED
from tests.support.qwen25_speech import FRAMES, STAGES, TEXTS, WORDS, expected_sounds
from tests.support.serve_process import serving
from tests.support.speech_chats import answered, asked, assert_same_sound, samples, streamed_samples

MODEL = "tiny-qwen25-omni"
OLD_FILE = CHECKOUT / "tests" / "omni_contract" / "convert" / "old" / "qwen2_5_omni.yaml"
"""vLLM-Omni's own example of this family."""
FOR_A_TINY_MODEL = (
    *("--skip-refused", "--device", "cpu", "--dtype", "float32", "--max-model-len", "2048"),
    *("--max-num-seqs", "16", "--kv-cache-memory-bytes", str(2**28)),
)
ASKED = asked(MODEL, STAGES)
DRAWN = asked(MODEL, [{**STAGES[0], "temperature": 0.9}, {"max_tokens": FRAMES}, {}])


@pytest.fixture(scope="module")
def expected(models: Path) -> list[Any]:
    return expected_sounds(models / "qwen2.5-omni", models)


@pytest.fixture(scope="module", params=["an example on transformers", "an old stage file on vllm"])
def client(models: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[OpenAI]:
    """With thinker and talker as they are served from either kind of file."""
    folder = tmp_path_factory.mktemp("serve")
    is_old = request.param == "an old stage file on vllm"
    arguments = old_stage_file(models, folder) if is_old else own_file(models)
    with serving(*arguments, folder=folder) as serve:
        yield OpenAI(base_url=f"{serve.url()}/v1", api_key="none", max_retries=0)


def own_file(models: Path) -> tuple[str, ...]:
    """The talker on transformers."""
    return str(CHECKOUT / "examples" / "tiny-qwen2.5-omni.yaml"), "--volume", f"models={models}"


def old_stage_file(models: Path, folder: Path) -> tuple[str, ...]:
    """Thinker and talker on vLLM, with more requests at once than the one that the file allows."""
    text, one = OLD_FILE.read_text(), "max_inflight: 1"
    assert text.count(one) == 1
    file = folder / f"{MODEL}.yaml"
    file.write_text(text.replace(one, "max_inflight: 16"))
    return str(models / "qwen2.5-omni"), "--stage-configs-path", str(file), *FOR_A_TINY_MODEL


@pytest.mark.case("runtime:B3", "runtime:S15", "runtime:S16")
def test_speech_is_that_of_transformers_for_one_and_for_several_at_once(client: OpenAI, expected: list[Any]) -> None:
    with ThreadPoolExecutor() as clients:
        several = list(clients.map(lambda text: samples(answered(client, text, ASKED)), TEXTS))
    alone = samples(answered(client, TEXTS[0], ASKED))
    for ours, theirs in zip([alone, *several], [expected[0], *expected], strict=True):
        assert_same_sound(ours, theirs)


def test_an_answer_has_text_and_sound_and_counts_both(client: OpenAI) -> None:
    answer = answered(client, TEXTS[0], ASKED)
    audio = answer.choices[0].message.audio
    assert audio is not None and audio.transcript
    assert answer.usage is not None and answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens_details.audio_tokens == len(samples(answer)) / 480
    assert answer.usage.completion_tokens == WORDS + answer.usage.completion_tokens_details.audio_tokens


def test_streamed_sound_is_that_of_the_whole_answer(client: OpenAI) -> None:
    whole = samples(answered(client, TEXTS[1], ASKED))
    assert streamed_samples(client, TEXTS[1], ASKED).tolist() == whole.tolist()


@pytest.mark.case("runtime:B7")
def test_a_seed_draws_the_same_words_and_sound_in_ten_runs_and_among_sixteen_neighbours(client: OpenAI) -> None:
    def said(seed: int) -> tuple[str | None, Any]:
        answer = answered(client, TEXTS[2], {**DRAWN, "seed": seed})
        return answer.choices[0].message.content, samples(answer)

    words, sound = said(SEED)
    alone = [said(SEED) for _ in range(RUNS - 1)]
    with ThreadPoolExecutor(1 + NEIGHBOURS) as clients:
        within, *neighbours = clients.map(said, [SEED, *range(100, 100 + NEIGHBOURS)])
    for each in (*alone, within):
        assert each[0] == words
        assert_same_sound(each[1], sound)
    assert len({words, *(words for words, _ in neighbours)}) > NEIGHBOURS // 2
    streamed = streamed_samples(client, TEXTS[2], {**DRAWN, "seed": SEED})
    assert_same_sound(streamed, sound)


def test_text_alone_keeps_the_talker_silent(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "hello"}], modalities=["text"], max_tokens=5
    )
    assert answer.choices[0].message.audio is None
    assert answer.usage is not None and answer.usage.completion_tokens == 5
