"""What a seed draws is the same however a model is set up: one replica or three, chunks or wholes, alone or in a crowd.

Over real processes and the orchestrator itself, since ids of words and codes are compared exactly, and a client hears
only the sound of the codes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from omni_runtime.offline.local_model import resolved, running_model
from omni_runtime.offline.settings import settings_of
from tests.layout.source import CHECKOUT
from tests.support.draws import CODES, NEIGHBOURS, Drawn, Speaker, assert_same, drawn

LIMITS: dict[str, Any] = {"talker.max_tokens": 24}
DRAWN_WORDS = {"thinker.temperature": 0.9, "thinker.max_tokens": 12, "thinker.min_tokens": 12}


@dataclass(frozen=True)
class Family:
    name: str
    speaker: Speaker
    engines: Mapping[str, Any] = field(default_factory=dict)
    """What a stage's block holds beside the example's."""


FAMILIES = (
    Family(
        "qwen2.5-omni",
        Speaker(
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "over the lazy dog"}]}]},
            LIMITS | DRAWN_WORDS | {"voice": "Ethan"},
        ),
        {"thinker": {"ar": {"backend": "transformers"}}},
    ),
    Family("qwen3-tts", Speaker({"input": "the quick brown fox", "voice": "ryan"}, LIMITS)),
)


def model_file(family: Family, folder: Path, replicas: int, streams: bool) -> Path:
    """The example, with so many replicas of each stage."""
    model = yaml.safe_load((CHECKOUT / "examples" / f"tiny-{family.name}.yaml").read_text())
    stages = model["spec"]["stages"]
    for stage in stages:
        stage |= {"replicas": replicas, **family.engines.get(stage["name"], {})}
        if stage["name"] == "talker":
            stage["output"] = {"modality": CODES}
    if not streams:
        names = [stage["name"] for stage in stages]
        whole = {"streaming": {"enabled": False}}
        model["spec"]["edges"] = [{"from": one, "to": after, **whole} for one, after in pairwise(names)]
    file = folder / f"{replicas}.yaml"
    file.write_text(yaml.safe_dump(model))
    return file


async def drawn_by(family: Family, file: Path, models: Path) -> tuple[list[Drawn], list[Drawn]]:
    settings = settings_of(file, {"models": models}, {}).serve
    async with running_model(resolved(settings), settings) as model:
        return await drawn(model, family.speaker)


@pytest.mark.case("runtime:B7")
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
async def test_a_seed_draws_the_same_in_ten_runs_and_a_crowd_over_one_replica_whole_and_over_three_in_chunks(
    family: Family, models: Path, tmp_path: Path
) -> None:
    whole, others = await drawn_by(family, model_file(family, tmp_path, 1, streams=False), models)
    chunked, others_chunked = await drawn_by(family, model_file(family, tmp_path, 3, streams=True), models)
    first = whole[0]
    for each in (*whole[1:], *chunked):
        assert_same(each, first)
    for one, other in zip(others, others_chunked, strict=True):
        assert_same(other, one)
    assert first.codes and len({one.codes for one in others} - {first.codes}) > NEIGHBOURS // 2
    for stage in first.replicas:
        assert len({one.replicas[stage] for one in (*chunked, *others_chunked)}) == 3
