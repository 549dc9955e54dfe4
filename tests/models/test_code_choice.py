"""Codes chosen for many speeches at once are those that transformers' processors would choose for each alone."""

import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinNewTokensLengthLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SuppressTokensLogitsProcessor,
)

from omni_runtime.families.code_choice import Choice, Chooser, Narrowing, drawn
from omni_runtime.stepping.warpers import warpers

CODES, NEVER, ENDS, PROMPT = 20, [17], [18, 19], [16, 17]
FRAMES = 40
RULES = [
    # Penalty, least codes, temperature, top_k, top_p.
    (1.0, 0, 0.0, 8, 0.9),
    (1.3, 0, 0.0, 8, 0.9),
    (1.3, 10, 0.0, 8, 0.9),
    (1.05, 3, 0.9, 8, 0.9),
    (0.8, FRAMES, 1.5, 8, 0.9),
    (1.05, 0, 0.9, 8, 0.9),
    (1.05, 0, 0.9, 0, 1.0),
    (1.05, 0, 0.9, 3, 1.0),
]
"""The fourth and the sixth are narrowed together, though others are between them."""


def speaking(penalty: float, least: int, temperature: float, top_k: int, top_p: float, *, seed: int) -> Choice:
    has_come = torch.zeros(CODES, dtype=torch.bool)
    has_come[PROMPT] = True
    dice = torch.Generator().manual_seed(seed)
    return Choice(penalty, least, Narrowing(temperature, top_k, top_p), dice, has_come)


def by_transformers(
    penalty: float, least: int, temperature: float, *narrowing: float, seed: int, logits: torch.Tensor
) -> list[int]:
    """As its `generate` lines them up and draws, going on behind an end, which this test can do as well."""
    lined_up = LogitsProcessorList(
        [
            RepetitionPenaltyLogitsProcessor(penalty),
            MinNewTokensLengthLogitsProcessor(len(PROMPT), least, ENDS)
            if least
            else RepetitionPenaltyLogitsProcessor(1.0),
            SuppressTokensLogitsProcessor(NEVER),
            *warpers(temperature, *narrowing),
        ]
    )
    said, dice = list(PROMPT), torch.Generator().manual_seed(seed)
    for row in logits:
        scores = lined_up(torch.tensor([said]), row[None])
        chosen = torch.multinomial(scores.softmax(-1), 1, generator=dice) if temperature else scores.argmax()
        said.append(int(chosen))
    return said[len(PROMPT) :]


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn((FRAMES, len(RULES), CODES), generator=torch.Generator().manual_seed(1))


def test_speeches_of_unlike_rules_choose_as_each_would_alone(logits):
    chooser = Chooser(torch.tensor(NEVER), torch.tensor(ENDS))
    choices = [speaking(*rules, seed=seed) for seed, rules in enumerate(RULES)]
    made: list[list[int]] = [[] for _ in choices]
    for rows in logits:
        for choice, codes, code in zip(choices, made, chooser.choose(choices, rows).tolist(), strict=True):
            choice.say(code)
            codes.append(code)
    alone = [by_transformers(*rules, seed=seed, logits=logits[:, seed]) for seed, rules in enumerate(RULES)]
    assert made == alone
    # Each of the rules has made a difference.
    assert set(made[0][:10]) & set(ENDS) and not set(made[2][:10]) & set(ENDS)
    assert len({tuple(codes) for codes in made}) == len(RULES)


def test_a_draw_takes_of_the_dice_what_transformers_takes_and_of_the_greedy_nothing():
    scores = torch.randn((3, 3072), generator=torch.Generator().manual_seed(1))
    dice, theirs = ([torch.Generator().manual_seed(seed) for seed in range(3)] for _ in range(2))
    narrowings = [Narrowing(0.9, 50, 1.0), Narrowing(0.0, 50, 1.0), Narrowing(0.9, 50, 1.0)]
    for _ in range(20):
        codes = drawn(narrowings, dice, scores)
        assert codes[1] == scores[1].argmax()
        for row in (0, 2):
            chances = LogitsProcessorList(warpers(0.9, 50, 1.0))(torch.empty((1, 0)), scores[row][None]).softmax(-1)
            assert codes[row] == torch.multinomial(chances, 1, generator=theirs[row])
    for own, other in zip(dice, theirs, strict=True):
        assert own.get_state().equal(other.get_state())
