"""A thinker on vLLM in a restricted pod: what the SDK gets for words, a picture and sound is transformers' own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from openai import OpenAI

from omni_runtime.local.tiny_demo import make_checkpoint
from tests.cluster_e2e import models
from tests.cluster_e2e.conftest import Cluster
from tests.cluster_e2e.forward import port_forward
from tests.support.thinker_chats import CHATS, expected_answers, greedy, message


@pytest.fixture(scope="module")
def checkpoint(cluster: Cluster) -> Path:
    folder = cluster.kind.settings.models / "qwen2.5-omni"
    make_checkpoint(folder, "qwen2.5-omni")
    return folder


@pytest.fixture(scope="module")
def expected(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return expected_answers(checkpoint, tmp_path_factory.mktemp("reference"))


@pytest.fixture(scope="module")
def thinker(cluster: Cluster, checkpoint: Path) -> Iterator[str]:
    with cluster.serving(models.example("tiny-thinker.yaml")) as name:
        yield name


def answers(cluster: Cluster, model: str) -> list[str | None]:
    with port_forward(cluster.kind, cluster.namespace, f"service/{model}-frontend") as url:
        client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=120)
        made = (client.chat.completions.create(messages=message(chat), **greedy(model)) for chat in CHATS)
        return [one.choices[0].message.content for one in made]


def test_a_thinker_in_a_pod_answers_as_transformers(cluster: Cluster, thinker: str, expected: list[str]) -> None:
    assert answers(cluster, thinker) == expected
