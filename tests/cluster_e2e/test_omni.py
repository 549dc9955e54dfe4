"""A model that listens and speaks, its three stages in three pods, then in two: what the SDK gets is transformers' own.

All tests share one deployed model, from the first to the last: its thinker takes longest to start.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionChunk

from omni_contract.wire import names
from omni_runtime.local.tiny_demo import make_checkpoint
from tests.cluster_e2e import models
from tests.cluster_e2e.conftest import Cluster
from tests.cluster_e2e.faults import kill, process_of
from tests.cluster_e2e.forward import port_forward
from tests.cluster_e2e.worker_metrics import samples
from tests.support.chat_client import WAV_HEADER_BYTES, Heard, heard, take
from tests.support.qwen25_speech import STAGES as SAMPLING
from tests.support.qwen25_speech import TEXTS, expected_sounds
from tests.support.speech_chats import asked, assert_same_sound, said_by_user, streamed_samples
from tests.support.thinker_chats import CHATS, expected_answers, greedy, message
from tests.support.waiting import eventually

STAGES = THINKER, TALKER, VOCODER = ("thinker", "talker", "code2wav")
GROUP = f"colocation-with-{TALKER}"
QUEUE_TIMEOUT_S = 1
"""Shorter than the vocoder's container takes to come back."""
LONG = [
    {"temperature": 0, "repetition_penalty": 1.0, "min_tokens": 600, "max_tokens": 600},
    {"temperature": 0, "max_tokens": 24},
    {"steps": 1000},
]
"""An answer whose sound takes the vocoder longer than it takes us to kill it."""


@pytest.fixture(scope="module")
def checkpoint(cluster: Cluster) -> Path:
    folder = cluster.kind.settings.models / "qwen2.5-omni"
    make_checkpoint(folder, "qwen2.5-omni")
    return folder


def manifest(example: str) -> models.Manifest:
    """The example under one name, so that the second is an edit of the first."""
    made = models.example(example)
    made["metadata"]["name"] = "speaker"
    made["spec"]["frontend"] = {"limits": {"queueTimeoutSeconds": QUEUE_TIMEOUT_S}}
    return made


@pytest.fixture(scope="module")
def speaker(cluster: Cluster, checkpoint: Path) -> Iterator[str]:
    with cluster.serving(manifest("tiny-qwen2.5-omni.yaml")) as name:
        yield name


@pytest.fixture(scope="module")
def sounds(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return expected_sounds(checkpoint, tmp_path_factory.mktemp("sounds"))


@contextmanager
def sdk(cluster: Cluster, model: str) -> Iterator[OpenAI]:
    with port_forward(cluster.kind, cluster.namespace, f"service/{model}-frontend") as url:
        yield OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=120)


def assert_speaks_right(client: OpenAI, model: str, sounds: list[Any]) -> None:
    """Streamed, and to the sample."""
    for text, sound in zip(TEXTS, sounds, strict=True):
        assert_same_sound(streamed_samples(client, text, asked(model, SAMPLING)), sound)


def long_answer(client: OpenAI, model: str, is_spoken: bool = True) -> Iterator[ChatCompletionChunk]:
    fields = asked(model, LONG)
    if not is_spoken:
        fields |= {"modalities": ["text"], "audio": None}
    return iter(client.chat.completions.create(messages=said_by_user(TEXTS[0]), stream=True, **fields))


def outputs(cluster: Cluster, model: str) -> dict[str, bool]:
    """What the status says can be served."""
    told = cluster.get("omnimodel", model)["status"]["outputs"]
    return {one["modality"]: one["servable"] for one in told}


def test_a_thinker_in_a_pod_answers_words_a_picture_and_sound_as_transformers(
    cluster: Cluster, speaker: str, checkpoint: Path, tmp_path: Path
) -> None:
    fields = greedy(speaker)
    fields["extra_body"] |= {"repetition_penalty": 1.0, "modalities": ["text"]}
    with sdk(cluster, speaker) as client:
        made = (client.chat.completions.create(messages=message(chat), **fields) for chat in CHATS)
        said = [one.choices[0].message.content for one in made]
    assert said == expected_answers(checkpoint, tmp_path)


def test_three_pods_stream_the_speech_of_one_process(cluster: Cluster, speaker: str, sounds: list[Any]) -> None:
    assert [len(cluster.pods(speaker, stage)) for stage in STAGES] == [1, 1, 1]
    assert outputs(cluster, speaker) == {"text": True, "audio": True}
    with sdk(cluster, speaker) as client:
        assert_speaks_right(client, speaker, sounds)


@pytest.mark.case("runtime:C3")
def test_a_vocoder_that_is_killed_mid_answer_costs_the_sound_alone_and_comes_back(
    cluster: Cluster, speaker: str, sounds: list[Any]
) -> None:
    with sdk(cluster, speaker) as client:
        whole = robbed_of_its_vocoder(cluster, client, speaker)
        assert whole.text == heard(long_answer(client, speaker, is_spoken=False)).text
        assert (whole.audio_errors[0]["code"], whole.ends) == ("stage_unavailable", {0: "length"})
        assert len(whole.audio[0]) <= WAV_HEADER_BYTES

        eventually("the status says so", lambda: outputs(cluster, speaker) == {"text": True, "audio": False})
        root = str(client.base_url).removesuffix("/v1/")
        probe = httpx2.get(f"{root}/readyz", trust_env=False)
        assert (probe.status_code, probe.json()["status"]) == (200, "degraded")
        assert probe.json()["message"] == f"no audio: no replica of {VOCODER} is ready"
        page = httpx2.get(f"{root}/metrics", trust_env=False).text
        assert f'{names.FRONTEND_SERVABLE}{{modality="audio"}} 0.0' in page

        cluster.wait_ready(speaker)
        assert outputs(cluster, speaker) == {"text": True, "audio": True}
        assert_speaks_right(client, speaker, sounds)


def robbed_of_its_vocoder(cluster: Cluster, client: OpenAI, model: str) -> Heard:
    """A long answer, while whose first words come the vocoder is killed."""
    (pod,) = cluster.pods(model, VOCODER)
    process, whole = process_of(cluster.kind, pod), Heard()
    for chunk in long_answer(client, model):
        take(whole, chunk)
        if process and whole.kinds:
            kill(cluster.kind, process)
            process = ""
    return whole


def test_talker_and_vocoder_in_one_pod_hand_over_in_memory_and_say_the_same(
    cluster: Cluster, speaker: str, sounds: list[Any]
) -> None:
    """An edit of the running model: the thinker, whose place stays, goes on."""
    before = {pod["metadata"]["uid"] for pod in cluster.pods(speaker, THINKER)}
    models.apply(cluster.kind, cluster.namespace, manifest("tiny-qwen2.5-omni-two-pods.yaml"))
    cluster.wait_ready(speaker)
    assert [len(cluster.pods(speaker, part)) for part in (*STAGES, GROUP)] == [1, 0, 0, 1]
    assert {pod["metadata"]["uid"] for pod in cluster.pods(speaker, THINKER)} == before
    with sdk(cluster, speaker) as client:
        assert_speaks_right(client, speaker, sounds)
    (pod,) = cluster.pods(speaker, GROUP)
    puts = {
        sample.labels["connector"]: sample.value
        for sample in samples(cluster, pod)
        if sample.name == f"{names.WORKER_CONNECTOR_EVENTS}_total" and sample.labels["what"] == "puts"
    }
    assert puts.get("shm") == len(TEXTS)
