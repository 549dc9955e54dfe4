"""The code predictor: the codes of transformers' own, and draws that depend on a speech's seed and place alone."""

import pytest
import torch
from transformers import Qwen3OmniMoeForConditionalGeneration

from omni_runtime.families.code_predictor import TOP_P, CodePredictor, Draws, gumbel_noise

FRAMES = 6


@pytest.fixture(scope="module")
def theirs(tiny_checkpoint):
    whole = Qwen3OmniMoeForConditionalGeneration.from_pretrained(tiny_checkpoint("qwen3-omni")).eval()
    return whole.talker.code_predictor


@pytest.fixture(scope="module")
def ours(theirs):
    predictor = CodePredictor(theirs.config)
    assert predictor.load_weights(theirs.state_dict().items()) == set(dict(predictor.named_parameters()))
    return predictor


@pytest.mark.parametrize(
    ("missing", "own"),
    [
        ("model.layers.0.self_attn.k_proj.weight", "layers.0.self_attn.qkv_proj"),
        ("model.layers.0.mlp.up_proj.weight", "layers.0.gate_up_proj"),
        ("lm_head.1.weight", "lm_head"),
        ("model.norm.weight", "norm.weight"),
    ],
)
def test_a_parameter_that_lacks_a_part_is_not_told_as_loaded(theirs, missing, own):
    weights = theirs.state_dict()
    del weights[missing]
    predictor = CodePredictor(theirs.config)
    loaded = predictor.load_weights(weights.items())
    assert set(dict(predictor.named_parameters())) - loaded == {own}


def test_weights_may_come_in_several_turns(theirs):
    predictor, weights = CodePredictor(theirs.config), list(theirs.state_dict().items())
    first = predictor.load_weights(weights[::2])
    assert first < predictor.load_weights(weights[1::2]) == set(dict(predictor.named_parameters()))


@pytest.fixture(scope="module")
def rows(theirs):
    """Of the talker's states and of its codes."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn((2, FRAMES, theirs.config.hidden_size), generator=generator)


def draws(count=FRAMES, is_greedy=False):
    seeds = torch.arange(count) * 2**40 + 5
    return Draws(seeds, torch.arange(count), torch.full((count,), is_greedy))


@torch.no_grad()
def test_greedy_codes_and_their_rows_are_those_of_transformers(ours, theirs, rows):
    made = theirs.generate(inputs_embeds=rows.transpose(0, 1), max_new_tokens=3, do_sample=False)
    tables = theirs.get_input_embeddings()
    codes, sums = ours(*rows, draws(is_greedy=True))
    assert codes.tolist() == made.tolist()
    assert ours.rows_of(codes).equal(sums)
    torch.testing.assert_close(sums, sum(table(column) for table, column in zip(tables, made.T, strict=True)))


@torch.no_grad()
def test_drawn_codes_are_the_same_alone_and_among_others_and_follow_seed_and_place(ours, rows):
    codes, _ = ours(*rows, draws())
    for place in range(FRAMES):
        one = slice(place, place + 1)
        alone, _ = ours(*rows[:, one], Draws(*(part[one] for part in vars(draws()).values())))
        assert alone.tolist() == codes[one].tolist()
    same = rows[:, :1].expand(-1, FRAMES, -1)
    seeds, places, drawn = vars(draws()).values()
    by_seed, _ = ours(*same, Draws(seeds, places * 0, drawn))
    by_place, _ = ours(*same, Draws(seeds * 0, places, drawn))
    assert len(by_seed.unique(dim=0)) > 1
    assert len(by_place.unique(dim=0)) > 1


@torch.no_grad()
def test_codes_are_drawn_as_often_as_they_are_likely_among_the_likeliest(ours, theirs, rows):
    count = 20_000
    states, code_rows = rows[:, :1].expand(-1, count, -1)
    seeds = torch.arange(count)
    codes, _ = ours(states, code_rows, Draws(seeds, seeds * 0, torch.zeros(count, dtype=torch.bool)))
    logits = theirs(inputs_embeds=rows[:, :1].transpose(0, 1)).logits[0, -1]
    likely, order = logits.softmax(-1).sort(descending=True)
    kept = likely.cumsum(0) - likely < TOP_P * likely[:50].sum()
    wanted = torch.zeros_like(likely).index_put((order[kept],), likely[kept] / likely[kept].sum())
    seen = codes[:, 0].bincount(minlength=len(wanted)) / count
    assert (seen[wanted == 0] == 0).all()
    assert (seen - wanted).abs().max() < 0.015


def test_noise_is_that_of_a_gumbel_distribution_and_unlike_for_unlike_draws():
    noise = gumbel_noise(draws(), groups=15, candidates=2048)
    assert abs(noise.mean() - 0.5772) < 0.01
    assert abs(noise.std() - 1.2825) < 0.01
    assert noise.flatten(1).corrcoef().fill_diagonal_(0).abs().max() < 0.02
