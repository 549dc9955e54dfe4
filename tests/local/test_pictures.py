"""The same file, the tiny model: pictures over the official SDK equal plain diffusers, split and fused."""

from base64 import b64decode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy
import pytest
from openai import OpenAI
from PIL import Image

from tests.support.local_models import EXAMPLE
from tests.support.reference_images import ReferenceRequest, reference_images
from tests.support.serve_process import Serve

PROMPT = "a red fox"
SEEDS = (1, 2, 3)
FUSED = """
apiVersion: serving.omnimodel.dev/v1alpha1
kind: OmniModel
metadata: {name: tiny-qwen-image}
spec:
  model: {source: pvc://models/qwen-image}
  family: qwen-image
  stages:
    - name: painter
      diffusion: {phases: [encode, denoise, decode]}
      output: {modality: image}
      accelerator: {pool: cpu}
"""


@dataclass(frozen=True)
class Painter:
    client: OpenAI
    models: Path

    def pictures(self, seed: int, n: int = 1) -> list[numpy.ndarray]:
        answer = self.client.images.generate(
            model="tiny-qwen-image",
            prompt=PROMPT,
            n=n,
            size="64x64",
            extra_body={"seed": seed, "steps": 3, "true_cfg_scale": 4.0, "negative_prompt": "blurry"},
        )
        return [numpy.asarray(Image.open(BytesIO(b64decode(item.b64_json)))) for item in answer.data]

    def reference(self, *seeds: int) -> list[numpy.ndarray]:
        requests = [ReferenceRequest(PROMPT, negative_prompt="blurry", seed=seed) for seed in seeds]
        return reference_images(self.models / "qwen-image", requests)


@pytest.fixture(scope="module", params=["split", "fused"])
def painter(
    request: pytest.FixtureRequest, served: Callable[..., Serve], models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Painter:
    file = EXAMPLE
    if request.param == "fused":
        file = tmp_path_factory.mktemp("model") / "fused.yaml"
        file.write_text(FUSED)
    return Painter(OpenAI(base_url=f"{served(file).url()}/v1", api_key="none", max_retries=0), models)


@pytest.mark.case("runtime:A1", "runtime:B13")
def test_three_seeds_give_three_pictures_equal_to_plain_diffusers(painter: Painter) -> None:
    made = [painter.pictures(seed)[0] for seed in SEEDS]
    assert [picture.shape for picture in made] == [(64, 64, 3)] * 3
    assert [numpy.array_equal(*pair) for pair in zip(made, painter.reference(*SEEDS), strict=True)] == [True] * 3
    assert len({picture.tobytes() for picture in made}) == 3


@pytest.mark.case("runtime:B8", "runtime:L19")
def test_two_at_once_equal_two_single_calls_with_the_next_seed(painter: Painter) -> None:
    both = painter.pictures(seed=1, n=2)
    assert [picture.tobytes() for picture in both] == [picture.tobytes() for picture in painter.reference(1, 2)]


@pytest.mark.case("runtime:L20", "runtime:B10")
def test_eight_at_once_each_equal_their_single_runs(painter: Painter) -> None:
    seeds = range(10, 18)
    with ThreadPoolExecutor(len(seeds)) as pool:
        made = list(pool.map(lambda seed: painter.pictures(seed)[0].tobytes(), seeds))
    assert made == [picture.tobytes() for picture in painter.reference(*seeds)]
