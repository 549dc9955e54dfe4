"""What a seed draws is the same however a model is set up: one replica or three, chunks or wholes, alone or in a crowd.

Over real processes and the orchestrator itself, since ids of words and codes are compared exactly, and a client hears
only the sound of the codes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.draws import CODES, Speaker, assert_a_seed_draws_the_same
from tests.support.setups import Setups, example, several_setups

LIMITS: dict[str, Any] = {"talker.max_tokens": 24}
DRAWN_WORDS = {"thinker.temperature": 0.9, "thinker.max_tokens": 12, "thinker.min_tokens": 12}


@dataclass(frozen=True)
class Family:
    name: str
    speaker: Speaker
    engines: Mapping[str, Any] = field(default_factory=dict)
    """What a stage's block holds beside the example's."""

    def spec(self) -> dict[str, Any]:
        spec = example(f"tiny-{self.name}")
        for stage in spec["stages"]:
            stage |= self.engines.get(stage["name"], {})
            if stage["name"] == "talker":
                stage["output"] = {"modality": CODES}
        return spec


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


@pytest.fixture(params=FAMILIES, ids=lambda family: family.name)
def family(request: pytest.FixtureRequest) -> Family:
    chosen: Family = request.param
    return chosen


@pytest.fixture
def setups(family: Family, models: Path, tmp_path: Path) -> Iterator[Setups]:
    spec = family.spec()
    several = [stage["name"] for stage in spec["stages"]]
    with several_setups(family.name.replace(".", ""), spec, several, tmp_path, models) as setups:
        yield setups


@pytest.mark.case("runtime:B7")
async def test_a_seed_draws_the_same_in_ten_runs_and_a_crowd_over_one_replica_and_three_in_chunks_and_whole(
    family: Family, setups: Setups
) -> None:
    await assert_a_seed_draws_the_same(setups, family.speaker)
