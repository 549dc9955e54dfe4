"""API keys: asked for where they matter, rotated while the frontend runs."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import openai as sdk
import pytest
from openai import OpenAI

from tests.support.fake_chain import MODEL, fake_chain
from tests.support.model_processes import ModelProcesses, model_processes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[ModelProcesses]:
    with model_processes(fake_chain(), tmp_path_factory.mktemp("guarded")) as processes:
        plan = processes.plans["frontend-0"]
        processes.plans["frontend-0"] = replace(plan, arguments=(*plan.arguments, "--api-keys", str(folder)))
        asyncio.run(processes.start())
        yield processes


def client(processes: ModelProcesses, key: str) -> OpenAI:
    return OpenAI(base_url=f"{processes.urls[0]}/v1", api_key=key, max_retries=0)


def test_only_a_known_key_is_let_in(guarded: ModelProcesses, folder: Path) -> None:
    (folder / "team-a").write_text("key-a\n")
    assert client(guarded, "key-a").images.generate(model=MODEL, prompt="a fox").data
    with pytest.raises(sdk.AuthenticationError) as caught:
        client(guarded, "key-b").images.generate(model=MODEL, prompt="a fox")
    assert caught.value.code == "invalid_api_key"


def test_a_new_key_counts_at_once_and_a_removed_one_no_longer(guarded: ModelProcesses, folder: Path) -> None:
    (folder / "team-a").write_text("key-c\n")
    assert client(guarded, "key-c").models.list().data
    with pytest.raises(sdk.AuthenticationError):
        client(guarded, "key-a").models.list()


def test_an_empty_folder_lets_nobody_in(guarded: ModelProcesses, folder: Path) -> None:
    (folder / "team-a").unlink(missing_ok=True)
    for key in ("key-a", "none"):
        with pytest.raises(sdk.AuthenticationError):
            client(guarded, key).models.list()


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/version"])
def test_the_cluster_s_own_paths_need_no_key(guarded: ModelProcesses, path: str) -> None:
    assert httpx2.get(f"{guarded.urls[0]}{path}", trust_env=False).status_code == 200


@pytest.mark.parametrize("header", [None, "key-a", "Basic a2V5", "Bearer"])
def test_without_a_bearer_key_the_way_to_send_one_is_said(guarded: ModelProcesses, header: str | None) -> None:
    headers = {} if header is None else {"authorization": header}
    answer = httpx2.get(f"{guarded.urls[0]}/debug/stages", headers=headers, trust_env=False)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer KEY" in answer.json()["error"]["message"]
