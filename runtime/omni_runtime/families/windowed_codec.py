"""A causal codec in steps: a transformer that sees a window of frames, then convolutions up to samples.

The transformer keeps keys and values of its window; the first of the convolutions behind it see the last of its states
again. So a chunk costs little more than its own frames cost, however long the speech, and the samples are those of one
decode.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Protocol, TypeAlias

import torch
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from omni_contract.wire.payload import Value
from omni_runtime.families.codec_reach import Convolution, Span, Upsampling, length, needed
from omni_runtime.families.codec_stages import Stage, route, through
from omni_runtime.generation.decoder import Turn

SAMPLE_RATE = 24_000
FRAMES_PER_STEP = 300
"""Bounds the memory of a step; transformers decodes as many at once."""
DILATIONS = (1, 3, 9)
KERNEL = 7
FAR = 100_000
"""A frame so late that all before it are there."""
KeysAndValues: TypeAlias = tuple[torch.Tensor, torch.Tensor]
Layers: TypeAlias = Sequence[Convolution | Upsampling]


class CodecConfig(Protocol):
    codebook_size: int
    num_quantizers: int
    num_hidden_layers: int
    num_key_value_heads: int
    sliding_window: int
    upsample_rates: Sequence[int]
    upsampling_ratios: Sequence[int]


@dataclass(frozen=True)
class Widths:
    """`head` is of the transformer's attention; `states` is of what it hands to the convolutions."""

    head: int
    states: int


@dataclass
class CodecStream:
    """What later frames need of those before."""

    window: list[KeysAndValues]
    """Of each layer, (heads, frames, head size), of the last frames that the attention still sees."""
    states: torch.Tensor
    """The transformer's (frames, width), of the last frames that the convolutions still see."""
    position: int = 0
    batch_key = "codes"

    def has_work(self, waiting: int, is_ended: bool) -> bool:
        return waiting > 0


class WindowCache:
    """Stands in for transformers' cache: keys and values before the new ones, of several streams, padded in front."""

    def __init__(self, before: Sequence[KeysAndValues]) -> None:
        self.joined: list[KeysAndValues] = list(before)

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int) -> KeysAndValues:
        old_keys, old_values = self.joined[layer]
        self.joined[layer] = torch.cat((old_keys, keys), dim=2), torch.cat((old_values, values), dim=2)
        return self.joined[layer]

    def window(self, row: int, end: int, room: int) -> list[KeysAndValues]:
        """A stream's last frames before `end`, as many as there is room for."""
        return [
            (keys[row, :, end - room : end].clone(), values[row, :, end - room : end].clone())
            for keys, values in self.joined
        ]


class WindowedCodec(ABC):
    """`module` has a `pre_transformer`, and `upsample` and `decoder` behind it, as Qwen3-Omni's code2wav has.

    `stages` are the layers of each part of those two.
    """

    sample_rate = SAMPLE_RATE
    frames_per_step = FRAMES_PER_STEP

    def __init__(self, module: Any, config: CodecConfig, widths: Widths, stages: Sequence[Layers]) -> None:
        self._module = module
        self._config = config
        self._widths = widths
        parts = [*module.upsample, *([part] for part in module.decoder[:-2]), module.decoder[-2:]]
        self._stages = [Stage(layers, partial(_run, part)) for layers, part in zip(stages, parts, strict=True)]
        self._layers = list(chain.from_iterable(stages))
        self._context = context_frames(self._layers)
        self.code_groups = config.num_quantizers
        self.codebook_size = config.codebook_size

    @abstractmethod
    def _embedded(self, streams: Sequence[Any], codes: torch.Tensor) -> torch.Tensor:
        """What the transformer reads, (streams, frames, width), of new codes, (streams, groups, frames)."""

    def _remember(self, stream: Any, codes: torch.Tensor) -> None:  # noqa: B027
        """What `_embedded` needs of these codes, (groups, frames), in the next step."""

    @property
    def modules(self) -> list[torch.nn.Module]:
        return [self._module]

    def test_turns(self) -> list[object]:
        codes = torch.zeros((self.code_groups, 2), dtype=torch.long)
        return list(self.step([Turn(self.begin({}), codes)]))

    def begin(self, parameters: Mapping[str, Value]) -> CodecStream:
        return CodecStream(window=self._no_window(), states=self._nothing(0, self._widths.states))

    def step(self, turns: Sequence[Turn]) -> list[torch.Tensor | None]:
        streams: list[CodecStream] = [turn.stream for turn in turns]
        codes = [turn.codes.to(self._module.device) for turn in turns if turn.codes is not None]
        counts = [one.shape[1] for one in codes]
        padded = pad_sequence([one.T for one in codes], batch_first=True).transpose(1, 2)
        states, windows = self._transformed(streams, counts, self._embedded(streams, padded))
        seen = [torch.cat((stream.states, own)) for stream, own in zip(streams, states, strict=True)]
        made = self._convolved(seen, [self._own(turn, count) for turn, count in zip(turns, counts, strict=True)])
        for stream, own, window, own_codes in zip(streams, states, windows, codes, strict=True):
            stream.states = torch.cat((stream.states, own))[-self._context :]
            stream.window = window
            stream.position += own_codes.shape[1]
            self._remember(stream, own_codes)
        return made

    def _no_window(self) -> list[KeysAndValues]:
        nothing = self._nothing(self._config.num_key_value_heads, 0, self._widths.head)
        return [(nothing, nothing)] * self._config.num_hidden_layers

    def _nothing(self, *shape: int) -> torch.Tensor:
        return torch.zeros(shape, device=self._module.device, dtype=self._module.dtype)

    def _transformed(
        self, streams: Sequence[CodecStream], counts: Sequence[int], embeddings: torch.Tensor
    ) -> tuple[list[torch.Tensor], list[list[KeysAndValues]]]:
        """Each stream's new states, and its window for the next step."""
        before = [stream.window[0][0].shape[1] for stream in streams]
        cache = WindowCache([_padded(windows) for windows in zip(*(stream.window for stream in streams), strict=True)])
        mask = window_mask(before, max(counts), self._config.sliding_window).to(embeddings.device)
        positions = torch.tensor([[stream.position] for stream in streams]) + torch.arange(max(counts))
        states = self._module.pre_transformer(
            inputs_embeds=embeddings,
            attention_mask={"full_attention": mask, "sliding_attention": mask},
            position_ids=positions.to(embeddings.device),
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state
        rooms = [min(self._config.sliding_window - 1, old + new) for old, new in zip(before, counts, strict=True)]
        windows = [
            cache.window(row, max(before) + count, room)
            for row, (count, room) in enumerate(zip(counts, rooms, strict=True))
        ]
        return [row[:count] for row, count in zip(states, counts, strict=True)], windows

    def _convolved(self, states: Sequence[torch.Tensor], wanted: Sequence[Span | None]) -> list[torch.Tensor | None]:
        """The samples that are wanted of each stream."""
        if not (spans := [span for span in wanted if span is not None]):
            return [None] * len(wanted)
        first = min(span.start for span in spans)
        hidden = pad_sequence(list(states), batch_first=True).transpose(1, 2)
        way = route(self._stages, hidden.shape[2], Span(first, max(span.end for span in spans)))
        made = through(self._stages, hidden[..., way.taken.start : way.taken.end], way.kept)
        sound = made.clamp(min=-1, max=1)[:, 0].float().cpu()
        return [
            None if span is None else row[span.start - first : span.end - first].clone()
            for row, span in zip(sound, wanted, strict=True)
        ]

    def _own(self, turn: Turn, count: int) -> Span | None:
        """The samples that no step before has made, of no frame that only leads in."""
        seen = len(turn.stream.states)
        frames = (seen + turn.lead_in, seen + count)
        made, end = (length(self._layers, among) if among else 0 for among in frames)
        return Span(made, end) if end > made else None


def _run(part: Iterable[torch.nn.Module], hidden: torch.Tensor) -> torch.Tensor:
    for module in part:
        hidden = module(hidden)
    return hidden


def convolutions(config: CodecConfig, cuts_left: bool) -> list[Layers]:
    """The layers behind the transformer, stage by stage; causal, but for what upsampling cuts on the left."""
    plain = Convolution(KERNEL - 1)
    stages: list[Layers] = [[Upsampling(ratio, ratio, 0, 0), plain] for ratio in config.upsampling_ratios]
    stages.append([plain])
    for rate in config.upsample_rates:
        dilated = [Convolution((KERNEL - 1) * dilation) for dilation in DILATIONS]
        stages.append([Upsampling(rate, 2 * rate, rate if cuts_left else 0, rate), *dilated])
    return [*stages, [plain]]


def context_frames(layers: Layers) -> int:
    """How many frames before its own a chunk must see, so that its samples are those of a whole decode."""
    first_sample = length(layers, FAR)
    return FAR - needed(layers, Span(first_sample, first_sample + 1)).start


def window_mask(before: Sequence[int], count: int, window: int) -> torch.Tensor:
    """Of shape (streams, 1, new, old and new): each new frame sees itself and the `window - 1` before it."""
    widest = max(before)
    keys = torch.arange(-widest, count)
    queries = torch.arange(count)[:, None]
    is_near = (keys <= queries) & (keys > queries - window)
    is_there = keys >= -torch.tensor(before)[:, None, None]
    return (is_near & is_there)[:, None]


def _padded(windows: Sequence[KeysAndValues]) -> KeysAndValues:
    """Those of one layer as a batch, shorter ones padded in front."""
    widest = max(keys.shape[1] for keys, _ in windows)
    keys, values = (
        torch.stack([pad(one, (0, 0, widest - one.shape[1], 0)) for one in ones]) for ones in zip(*windows, strict=True)
    )
    return keys, values
