"""The code predictor behind a talker: of each frame's first code it makes the others, one group after another.

A small decoder with a head and a table for each group. All shapes are those of the batch, and nothing waits for the
host, so that a graph can hold a whole frame. What a speech draws depends on its seed and its place alone. What is
between two products of matrices is a function of its own, each of which may be compiled into a kernel or two.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import nn
from torch.nn import functional

TOP_K, TOP_P = 50, 0.8
"""What transformers draws the codes of the further groups from, whatever the first one is drawn from."""
PREFIX_ROWS = 2
"""The talker's state and its code's row, which a frame begins with."""
JOINED = {
    "q_proj": ("qkv_proj", 0),
    "k_proj": ("qkv_proj", 1),
    "v_proj": ("qkv_proj", 2),
    "gate_proj": ("gate_up_proj", 0),
    "up_proj": ("gate_up_proj", 1),
}
"""Matrices that a checkpoint keeps apart, and which part of a joined one each is."""
BY_GROUP = ("codec_embedding", "lm_head")
"""These it keeps apart, too, group by group."""
KeysAndValues: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""Of one layer, each of shape (frames, heads of keys, heads of queries for each, rows, head size)."""


class Turns(NamedTuple):
    """Cosines and sines of places in a frame, of shape (places, head size)."""

    cosines: torch.Tensor
    sines: torch.Tensor


@dataclass(frozen=True)
class Draws:
    """How the codes of each frame are chosen, of shape (frames)."""

    seeds: torch.Tensor
    places: torch.Tensor
    """Of the frames in their speeches."""
    is_greedy: torch.Tensor


class CodePredictor(nn.Module):  # type: ignore[misc]
    """`config` is the checkpoint's own, of its code predictor."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.further_groups: int = config.num_code_groups - 1
        sizes = (config.vocab_size, config.hidden_size)
        self.codec_embedding = nn.Parameter(torch.empty(self.further_groups, *sizes))
        self.lm_head = nn.Parameter(torch.empty(self.further_groups, *sizes))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = Norm(config.hidden_size, config.rms_norm_eps)
        self._config = config
        self._between = Between()
        self._filled = defaultdict[str, set[int | None]](set)
        """Parts of parameters that have come: of a checkpoint in several files, they may come in several turns."""
        angles = _angles(config)
        self.register_buffer("_cosines", angles.cos(), persistent=False)
        self.register_buffer("_sines", angles.sin(), persistent=False)

    def forward(self, states: torch.Tensor, code_rows: torch.Tensor, draws: Draws) -> tuple[torch.Tensor, torch.Tensor]:
        """The further codes, of shape (frames, groups), and the sum of their rows, of shape (frames, width).

        `states` are the talker's, which made the frame's first code; `code_rows` are that code's.
        """
        noise = gumbel_noise(draws, self.further_groups, self._config.vocab_size)
        kept = [self._empty_cache(states) for _ in self.layers]
        rows, summed, codes = torch.stack((states, code_rows), dim=1), torch.zeros_like(states), list[torch.Tensor]()
        for group in range(self.further_groups):
            made = self._decoded(rows, kept, first=group + PREFIX_ROWS - 1 if group else 0)
            logits = functional.linear(made[:, -1], self.lm_head[group]).float()
            codes.append(self._between.chosen(logits, noise[:, group], draws.is_greedy))
            rows = functional.embedding(codes[-1], self.codec_embedding[group])[:, None]
            summed = summed + rows[:, 0]
        return torch.stack(codes, dim=1), summed

    def rows_of(self, codes: torch.Tensor) -> torch.Tensor:
        """The sum of the rows of further codes, added up in the order in which they are made."""
        summed = self.codec_embedding.new_zeros((len(codes), self._config.hidden_size))
        for group in range(self.further_groups):
            summed = summed + functional.embedding(codes[:, group], self.codec_embedding[group])
        return summed

    def compile_between(self) -> None:
        """For devices, where each small operation would be a kernel of its own."""
        self._between = Between(*(torch.compile(function, dynamic=True) for function in self._between))

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """From a checkpoint of transformers', whose matrices are apart; what is whole by now, by its names here."""
        parameters = dict(self.named_parameters())
        for name, weight in weights:
            own, part = _place(name.removeprefix("model."))
            target = parameters[own].data
            (target if part is None else _part_of(target, own, part, self._config)).copy_(weight)
            self._filled[own].add(part)
        return {own for own, parts in self._filled.items() if len(parts) == _parts(own, self._config)}

    def _empty_cache(self, like: torch.Tensor) -> KeysAndValues:
        heads, kv_heads, size = _heads(self._config)
        shape = (len(like), kv_heads, heads // kv_heads, self._config.num_code_groups, size)
        return like.new_empty(shape), like.new_empty(shape)

    def _decoded(self, rows: torch.Tensor, kept: list[KeysAndValues], first: int) -> torch.Tensor:
        end = first + rows.shape[1]
        turns = Turns(*(table[first:end].to(rows.dtype) for table in (self._cosines, self._sines)))
        norms = [*(layer.input_layernorm for layer in self.layers[1:]), self.norm]
        normed = self.layers[0].input_layernorm(rows)
        for layer, own, next_norm in zip(self.layers, kept, norms, strict=True):
            attended = layer.self_attn(normed, turns, own, first, self._between)
            rows, normed = self._between.added(rows, attended, *layer.post_attention_layernorm.terms)
            gated = self._between.gated(functional.linear(normed, layer.gate_up_proj))
            rows, normed = self._between.added(rows, functional.linear(gated, layer.down_proj), *next_norm.terms)
        return normed


class Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.input_layernorm = Norm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = Norm(config.hidden_size, config.rms_norm_eps)
        self.gate_up_proj = nn.Parameter(torch.empty(2 * config.intermediate_size, config.hidden_size))
        self.down_proj = nn.Parameter(torch.empty(config.hidden_size, config.intermediate_size))


class Attention(nn.Module):  # type: ignore[misc]
    def __init__(self, config: Any) -> None:
        super().__init__()
        self._size = config.head_dim
        self.qkv_proj = nn.Parameter(torch.empty(sum(_qkv_sizes(config)), config.hidden_size))
        self.o_proj = nn.Parameter(torch.empty(config.hidden_size, config.num_attention_heads * self._size))
        self.q_norm = Norm(self._size, config.rms_norm_eps)
        self.k_norm = Norm(self._size, config.rms_norm_eps)

    def forward(
        self, rows: torch.Tensor, turns: Turns, kept: KeysAndValues, first: int, between: "Between"
    ) -> torch.Tensor:
        frames, count, _ = rows.shape
        end = first + count
        heads = functional.linear(rows, self.qkv_proj).view(frames, count, -1, self._size).transpose(1, 2)
        keys, values = (cache[..., first:end, :] for cache in kept)
        queries = between.placed(heads, (self.q_norm.weight, *self.k_norm.terms), turns, keys, values)
        keys, values = (cache.flatten(1, 2)[:, :, :end] for cache in kept)
        attended = functional.scaled_dot_product_attention(queries, keys, values, is_causal=count > 1)
        return functional.linear(attended.transpose(1, 2).reshape(frames, count, -1), self.o_proj)


class Norm(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self._epsilon = epsilon

    @property
    def terms(self) -> tuple[torch.Tensor, float]:
        return self.weight, self._epsilon

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return _normed(rows, *self.terms)


def _normed(rows: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    return functional.rms_norm(rows, weight.shape, weight, epsilon)


def _added(
    rows: torch.Tensor, more: torch.Tensor, weight: torch.Tensor, epsilon: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum, as it is and normed."""
    rows = rows + more
    return rows, _normed(rows, weight, epsilon)


def _gated(gate_and_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_and_up.chunk(2, dim=-1)
    return functional.silu(gate) * up


def _placed(
    heads: torch.Tensor,
    norms: tuple[torch.Tensor, torch.Tensor, float],
    turns: Turns,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    """The queries; what is for the others to see goes into `keys` and `values`, once for each head that looks at it."""
    of_queries, of_keys, epsilon = norms
    kv_heads = keys.shape[1]
    queries, own_keys, own_values = heads.split((heads.shape[1] - 2 * kv_heads, kv_heads, kv_heads), dim=1)
    keys.copy_(_turned(_normed(own_keys, of_keys, epsilon), turns)[:, :, None].expand_as(keys))
    values.copy_(own_values[:, :, None].expand_as(values))
    return _turned(_normed(queries, of_queries, epsilon), turns)


def _turned(rows: torch.Tensor, turns: Turns) -> torch.Tensor:
    first, second = rows.chunk(2, dim=-1)
    return rows * turns.cosines + torch.cat((-second, first), dim=-1) * turns.sines


def _chosen(logits: torch.Tensor, noise: torch.Tensor, is_greedy: torch.Tensor) -> torch.Tensor:
    """The likeliest code, or one drawn from the likeliest ones: the highest with noise on top is such a draw."""
    best, candidates = logits.topk(min(TOP_K, logits.shape[-1]))
    likely = best.softmax(-1)
    is_out = likely.cumsum(-1) - likely >= TOP_P
    noisy = (best + noise.gather(-1, candidates)).masked_fill(is_out, -torch.inf)
    place = noisy.argmax(-1).masked_fill(is_greedy, 0)
    return candidates.gather(-1, place[:, None])[:, 0]


class Between(NamedTuple):
    """What happens between products of matrices."""

    added: Callable[..., tuple[torch.Tensor, torch.Tensor]] = _added
    gated: Callable[..., torch.Tensor] = _gated
    placed: Callable[..., torch.Tensor] = _placed
    chosen: Callable[..., torch.Tensor] = _chosen


def gumbel_noise(draws: Draws, groups: int, candidates: int) -> torch.Tensor:
    """Of shape (frames, groups, candidates): made of seeds and places by mixing their bits, on any device alike."""
    count = groups * candidates
    device = draws.seeds.device
    key = _mixed(_mixed(draws.seeds & MASK) ^ ((draws.seeds >> 32) & MASK))
    key = _mixed(key ^ (draws.places & MASK))
    bits = _mixed(_mixed(key[:, None] ^ torch.arange(count, device=device)) + key[:, None] & MASK)
    uniform = ((bits >> 8).float() + 0.5) * 2.0**-24
    return -torch.log(-torch.log(uniform)).view(-1, groups, candidates)


MASK = 0xFFFFFFFF
MULTIPLIERS = (0x7FEB352D, 0x846CA68B)


def _mixed(bits: torch.Tensor) -> torch.Tensor:
    """A mixing function of 32 bits, in a type of 64: of a product that has no room in it, the lower 32 are right."""
    bits = (bits ^ (bits >> 16)) * MULTIPLIERS[0] & MASK
    bits = (bits ^ (bits >> 15)) * MULTIPLIERS[1] & MASK
    return bits ^ (bits >> 16)


def _angles(config: Any) -> torch.Tensor:
    """Of each place in a frame, of shape (places, head size)."""
    steps = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    places = torch.arange(config.num_code_groups, dtype=torch.float32)[:, None]
    return (places / config.rope_parameters["rope_theta"] ** steps).repeat(1, 2)


def _heads(config: Any) -> tuple[int, int, int]:
    return config.num_attention_heads, config.num_key_value_heads, config.head_dim


def _qkv_sizes(config: Any) -> list[int]:
    heads, kv_heads, size = _heads(config)
    return [heads * size, kv_heads * size, kv_heads * size]


def _place(name: str) -> tuple[str, int | None]:
    """A weight's parameter here, and which part of it, if it is one."""
    names = name.split(".")
    if names[0] in BY_GROUP:
        return names[0], int(names[1])
    if (matrix := names[-2]) in JOINED:
        joined, part = JOINED[matrix]
        return ".".join(name for name in (*names[:-2], joined) if name != "mlp"), part
    is_matrix = matrix in ("o_proj", "down_proj")
    return ".".join(name for name in (names[:-1] if is_matrix else names) if name != "mlp"), None


def _parts(own: str, config: Any) -> int:
    """How many of a checkpoint's weights a parameter is made of."""
    if own in BY_GROUP:
        return int(config.num_code_groups - 1)
    return max(1, sum(joined == own.rpartition(".")[2] for joined, _ in JOINED.values()))


def _part_of(target: torch.Tensor, own: str, part: int, config: Any) -> torch.Tensor:
    if own in BY_GROUP:
        return target[part]
    sizes = _qkv_sizes(config) if own.endswith("qkv_proj") else [config.intermediate_size] * 2
    return target.split(sizes)[part]
