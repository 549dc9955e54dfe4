"""Pictures by plain diffusers, for any test to compare with: `reference_images(model_dir, requests)`."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy

from tests.support.judges import ask

SCRIPT = Path(__file__).parents[1] / "models" / "reference.py"


@dataclass(frozen=True)
class ReferenceRequest:
    """A picture to be made; named as the HTTP surface and our parameters name things."""

    prompt: str
    negative_prompt: str | None = None
    width: int = 64
    height: int = 64
    steps: int = 3
    guidance_scale: float = 4.0
    seed: int = 0


@dataclass(frozen=True)
class Judge:
    """Plain diffusers on a model; `dtype` is torch's name."""

    model_dir: Path
    device: str = "cpu"
    dtype: str = "float32"


_made: dict[tuple[Judge, ReferenceRequest], "numpy.ndarray[Any, Any]"] = {}
"""Per test session; the model folders of a session do not change."""


def reference_images(
    model_dir: Path, requests: Sequence[ReferenceRequest], device: str = "cpu", dtype: str = "float32"
) -> list["numpy.ndarray[Any, Any]"]:
    """RGB arrays (height, width, 3), uint8, in the order of `requests`."""
    judge = Judge(model_dir, device, dtype)
    missing = [request for request in dict.fromkeys(requests) if (judge, request) not in _made]
    if missing:
        for request, image in zip(missing, _run(judge, missing), strict=True):
            _made[judge, request] = image
    return [_made[judge, request] for request in requests]


def _run(judge: Judge, requests: Sequence[ReferenceRequest]) -> list["numpy.ndarray[Any, Any]"]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "images.npz"
        text = json.dumps([_arguments(request) for request in requests])
        ask(SCRIPT, [judge.model_dir, out, judge.device, judge.dtype], text, forks=judge.device == "cpu")
        with numpy.load(out) as images:
            return [images[str(position)] for position in range(len(requests))]


def _arguments(request: ReferenceRequest) -> dict[str, object]:
    arguments = asdict(request)
    arguments["num_inference_steps"] = arguments.pop("steps")
    arguments["true_cfg_scale"] = arguments.pop("guidance_scale")
    return arguments
