"""BigVGAN's activation: up to twice the rate, a snake, and down again, its two filters as matrix products.

Transformers runs the filters as convolutions with a channel for each group, which costs several times as much: most
of what a vocoder does is in here.
"""

import torch
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import Qwen2_5OmniAntiAliasedActivation1d

REACH = 6
"""Samples that it looks before and after each, half of them at either filter: twelve taps at twice the rate."""
BLOCK = 16
"""Samples that become one row of a product; with more there are more sums, with fewer more rows."""


class BlockFilter(torch.nn.Module):  # type: ignore[misc]
    """A filter's part of a block of samples, which sees some more on either side; the filter may change the rate."""

    def __init__(self, layer: torch.nn.Module, block: int, side: int) -> None:
        super().__init__()
        self._side = side
        self._block = block
        response = _response(layer, block, side)
        self._own = torch.nn.Buffer(response[:block].contiguous(), persistent=False)
        self._next = torch.nn.Buffer(response[block:].contiguous(), persistent=False)

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        """Of (rows, samples), before and after which the first and the last go on; made is followed by padding."""
        rows, count = samples.shape
        blocks = -(-count // self._block) + 1
        padded = samples.new_empty((rows, blocks * self._block))
        padded[:, : self._side] = samples[:, :1]
        padded[:, self._side : self._side + count] = samples
        padded[:, self._side + count :] = samples[:, -1:]
        taken = padded.view(-1, self._block)
        made = taken @ self._own
        # A row's last block is padding alone, so it does not matter that its next one is another row's.
        made[:-1].addmm_(taken[1:, : 2 * self._side], self._next)
        return made.view(rows, -1)


class AntiAliasedSnake(torch.nn.Module):  # type: ignore[misc]
    """Takes the place of transformers' own, with its weights."""

    def __init__(self, origin: Qwen2_5OmniAntiAliasedActivation1d) -> None:
        super().__init__()
        self.act = origin.act
        self._up = BlockFilter(origin.upsample, BLOCK, REACH // 2)
        self._down = BlockFilter(origin.downsample, 2 * BLOCK, REACH)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        streams, channels, count = hidden.shape
        raised = self._up(hidden.flatten(0, 1)).view(streams, channels, -1)
        bent = self._bend(raised)[..., : 2 * count]
        return self._down(bent.flatten(0, 1)).view(streams, channels, -1)[..., :count]

    def _bend(self, hidden: torch.Tensor) -> torch.Tensor:
        """In its own memory."""
        frequency, magnitude = self.act.alpha.exp()[:, None], self.act.beta.exp()[:, None]
        sine = (hidden * frequency).sin_()
        return hidden.addcmul_(sine.mul_(sine), 1 / (magnitude + self.act.no_div_by_zero))


def _response(layer: torch.nn.Module, block: int, side: int) -> torch.Tensor:
    """What each sample of a block, and each on its sides, adds to what the layer makes of the block."""
    heard, length = block + 2 * side, block + 4 * side
    impulses = torch.eye(length, device=layer.filter.device, dtype=layer.filter.dtype)[side : side + heard, None]
    made = layer(impulses)[:, 0]
    rate = made.shape[1] / length
    return made[:, round(2 * side * rate) : round((2 * side + block) * rate)]
