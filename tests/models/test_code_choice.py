"""Codes chosen for many speeches at once are those that transformers' processors would choose for each alone."""

import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinNewTokensLengthLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SuppressTokensLogitsProcessor,
)

from omni_runtime.families.qwen2_5_omni.code_choice import Choice, Chooser
from omni_runtime.stepping.warpers import warpers

CODES, NEVER, ENDS, PROMPT = 20, [17], [18, 19], [16, 17]
FRAMES = 40
RULES = [
    # Penalty, least codes, temperature.
    (1.0, 0, 0.0),
    (1.3, 0, 0.0),
    (1.3, 10, 0.0),
    (1.05, 3, 0.9),
    (0.8, FRAMES, 1.5),
]


def speaking(penalty: float, least: int, temperature: float, seed: int) -> Choice:
    has_come = torch.zeros(CODES, dtype=torch.bool)
    has_come[PROMPT] = True
    dice = torch.Generator().manual_seed(seed)
    return Choice(penalty, least, tuple(warpers(temperature, 8, 0.9)), dice, has_come)


def by_transformers(penalty: float, least: int, temperature: float, seed: int, logits: torch.Tensor) -> list[int]:
    """As its `generate` lines them up and draws, going on behind an end, which this test can do as well."""
    lined_up = LogitsProcessorList(
        [
            RepetitionPenaltyLogitsProcessor(penalty),
            MinNewTokensLengthLogitsProcessor(len(PROMPT), least, ENDS)
            if least
            else RepetitionPenaltyLogitsProcessor(1.0),
            SuppressTokensLogitsProcessor(NEVER),
            *warpers(temperature, 8, 0.9),
        ]
    )
    said, dice = list(PROMPT), torch.Generator().manual_seed(seed)
    for row in logits:
        scores = lined_up(torch.tensor([said]), row[None])
        drawn = torch.multinomial(scores.softmax(-1), 1, generator=dice) if temperature else scores.argmax()
        said.append(int(drawn))
    return said[len(PROMPT) :]


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn((FRAMES, len(RULES), CODES), generator=torch.Generator().manual_seed(0))


def test_speeches_of_unlike_rules_choose_as_each_would_alone(logits):
    chooser = Chooser(torch.tensor(NEVER), torch.tensor(ENDS))
    choices = [speaking(*rules, seed) for seed, rules in enumerate(RULES)]
    made: list[list[int]] = [[] for _ in choices]
    for rows in logits:
        for choice, codes, code in zip(choices, made, chooser.choose(choices, rows), strict=True):
            choice.say(code)
            codes.append(code)
    assert made == [by_transformers(*rules, seed, logits[:, seed]) for seed, rules in enumerate(RULES)]
    # Each of the rules has made a difference.
    assert set(made[0][:10]) & set(ENDS) and not set(made[2][:10]) & set(ENDS)
    assert len({tuple(codes) for codes in made}) == len(RULES)
