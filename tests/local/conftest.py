"""Everything in this folder runs `omni serve` for real."""

from pathlib import Path

import pytest

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


def fake_model_file(folder: Path, denoiser: str = "") -> tuple[str, ...]:
    """Arguments of `omni serve` for a model of fake stages; `denoiser` is its engine block in YAML."""
    file = folder / "model.yaml"
    file.write_text(FAKE_MODEL % {"denoiser": denoiser})
    return str(file), "--volume", f"models={folder}", "--allow-fake-engine"
