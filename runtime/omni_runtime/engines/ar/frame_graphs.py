"""The further codes of a frame as CUDA graphs, one for each of a few batch sizes: else the host would set the pace.

A frame is some thousand kernels, each of them shorter than its launch.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch

from omni_runtime.families.code_predictor import Draws

WARM_UPS = 2
Made: TypeAlias = tuple[torch.Tensor, torch.Tensor]
FurtherCodes: TypeAlias = Callable[[torch.Tensor, torch.Tensor, Draws], Made]


@dataclass(frozen=True)
class Captured:
    """A graph, and where its inputs and outputs are."""

    graph: torch.cuda.CUDAGraph
    states: torch.Tensor
    code_rows: torch.Tensor
    draws: Draws
    made: Made


class FrameGraphs:
    """`like` has a row for each frame of the largest batch. A smaller one is filled up with what nobody reads."""

    def __init__(self, further_codes: FurtherCodes, like: torch.Tensor) -> None:
        self._further_codes = further_codes
        self._pool = torch.cuda.graph_pool_handle()
        self._by_size = {size: self._captured(like[:size]) for size in reversed([*_sizes(len(like))])}

    def __call__(self, states: torch.Tensor, code_rows: torch.Tensor, draws: Draws) -> Made:
        count = len(states)
        captured = self._by_size[next(size for size in _sizes(count) if size >= count)]
        captured.states[:count] = states
        captured.code_rows[:count] = code_rows
        captured.draws.seeds[:count] = draws.seeds
        captured.draws.places[:count] = draws.places
        captured.draws.is_greedy[:count] = draws.is_greedy
        captured.graph.replay()
        codes, sums = captured.made
        return codes[:count].clone(), sums[:count].clone()

    def _captured(self, like: torch.Tensor) -> Captured:
        states, code_rows = torch.zeros_like(like), torch.zeros_like(like)
        seeds, places = (torch.zeros(len(like), dtype=torch.long, device=like.device) for _ in range(2))
        draws = Draws(seeds, places, torch.zeros_like(seeds, dtype=torch.bool))
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(WARM_UPS):
                self._further_codes(states, code_rows, draws)
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            made = self._further_codes(states, code_rows, draws)
        return Captured(graph, states, code_rows, draws, made)


def _sizes(most: int) -> Iterator[int]:
    """Powers of two, up to the first that is not below."""
    size = 1
    while size < most:
        yield size
        size *= 2
    yield size
