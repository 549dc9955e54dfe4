"""Everything in this folder runs `omni serve` for real."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.support.serve_process import Serve, serving

FAMILIES = ("qwen-image", "qwen2.5-omni", "qwen3-omni", "qwen3-tts")

FAKE_MODEL = """
apiVersion: serving.omnimodel.dev/v1alpha1
kind: OmniModel
metadata: {name: fake-painter}
spec:
  model: {source: pvc://models/none, loadFormat: dummy}
  stages:
    - {name: text-encoder, fake: {}, sampling: {width: 64, height: 64}}
    - {name: denoiser, fake: {%(denoiser)s}}
    - {name: vae-decoder, fake: {}, output: {modality: image}}
  edges:
    - {from: text-encoder, to: denoiser}
    - {from: denoiser, to: vae-decoder}
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("local")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the claim `models`, with tiny checkpoints as `omni tiny` writes them."""
    folder = tmp_path_factory.mktemp("models")
    # One process for all: its libraries take longer than the checkpoints.
    written = "; ".join(f"assert main(['tiny', '{family}', '{folder / family}']) == 0" for family in FAMILIES)
    subprocess.run([sys.executable, "-c", f"from omni_contract.cli import main; {written}"], check=True)
    return folder


@pytest.fixture(scope="session")
def served(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Serve]]:
    """An example behind `omni serve`, started when it is first asked for, for tests that leave it as it is."""
    with ExitStack() as running:

        @cache
        def served(file: Path, *flags: str) -> Serve:
            folder = tmp_path_factory.mktemp("serve")
            serve = running.enter_context(serving(str(file), *flags, "--volume", f"models={models}", folder=folder))
            serve.url()
            return serve

        yield served


def fake_model_file(folder: Path, denoiser: str = "") -> tuple[str, ...]:
    """Arguments of `omni serve` for a model of fake stages; `denoiser` is its engine block in YAML."""
    return model_file(folder, FAKE_MODEL % {"denoiser": denoiser})


def model_file(folder: Path, text: str) -> tuple[str, ...]:
    """Arguments of `omni serve` for a model of fake stages."""
    file = folder / "model.yaml"
    file.write_text(text)
    return str(file), "--volume", f"models={folder}", "--allow-fake-engine"
