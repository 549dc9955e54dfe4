"""Which requests of a step bring rows, and where they are in its batch. For vLLM's process."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

STATES_KEY = "omni_states"
"""In the extra_args of a request that wants its hidden states or frames: what it is known by."""
ROWS_KEY = "omni_rows"
"""In the extra_args of a prompt's part: the rows that are its input."""
SEED_KEY = "omni_seed"
"""In the extra_args of a prompt's part: what its draws beside vLLM's own come from."""


@dataclass(frozen=True)
class Taker:
    """A request's part of a step: its tokens from `start` to `end` in the batch, the first one at `position`."""

    request_id: str
    params: Any
    position: int
    start: int
    end: int

    @property
    def extra(self) -> dict[str, Any]:
        extra: dict[str, Any] = self.params.extra_args
        return extra

    @property
    def places(self) -> Iterator[tuple[int, int]]:
        """Places in the batch, each with the request's position that it is."""
        return ((place, self.position + place - self.start) for place in range(self.start, self.end))


def row_takers(runner: Any) -> list[Taker]:
    batch, starts, takers = runner.input_batch, runner.query_start_loc.np, list[Taker]()
    for place, request_id in enumerate(batch.req_ids[: batch.num_reqs]):
        params = runner.requests[request_id].sampling_params
        if ROWS_KEY in ((params and params.extra_args) or {}):
            computed = int(batch.num_computed_tokens_cpu[place])
            takers.append(Taker(request_id, params, computed, int(starts[place]), int(starts[place + 1])))
    return takers


def on_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Without waiting for what the device still does."""
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)
