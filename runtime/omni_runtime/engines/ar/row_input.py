"""Rows of requests' own as the input of a model in vLLM, and the frames that such a model makes of its tokens.

It runs in vLLM's process, around the forward pass and outside of what a graph holds. Rows come with the part of a
streamed prompt that is computed next, under ROWS_KEY; the last one holds from there on. All are kept as long as their
request lives, since vLLM may drop its cache and compute it anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from omni_runtime.engines.ar.frames import FrameMaker
from omni_runtime.engines.ar.takers import ROWS_KEY, Taker, on_device, row_takers
from omni_runtime.families.protocol import RowKind


class TakesRows(Protocol):
    """A model class of a family, as far as rows need it."""

    def input_rows(self, rows: torch.Tensor, kind: RowKind) -> torch.Tensor:
        """Rows as they came, of one kind, as the layers take them."""
        ...


@dataclass
class Source:
    """One request's rows, from its first position on."""

    rows: list[torch.Tensor] = field(default_factory=list)
    kinds: bytearray = field(default_factory=bytearray)
    positions: list[list[int]] | None = None
    """Of the prompt's tokens in time, height and width, if those are not its tokens counted; they come with it."""
    _ahead: int = 0
    """How much further the prompt has come than its tokens counted."""
    _last_part: Any = None

    def take(self, part: Mapping[str, Any]) -> None:
        """What came with the part that is computed now; a part may be computed in several steps."""
        if part is self._last_part:
            return
        rows = torch.frombuffer(bytearray(part["rows"]), dtype=getattr(torch, part["dtype"]))
        self._last_part = part
        self.rows[part["position"] :] = rows.view(-1, part["width"]).unbind()
        self.kinds[part["position"] :] = part["kinds"]
        if self.positions is None and part["positions"] is not None:
            self.positions = part["positions"]
            self._ahead = max(map(max, self.positions)) + 1 - len(self.positions)

    def at(self, position: int) -> tuple[torch.Tensor, RowKind]:
        place = min(position, len(self.rows) - 1)
        return self.rows[place], RowKind(self.kinds[place])

    def located(self, position: int) -> list[int]:
        """In time, height and width; what follows the prompt follows the furthest of it."""
        assert self.positions is not None
        if position < len(self.positions):
            return self.positions[position]
        return [position + self._ahead] * 3


class RowInput:
    """Takes the place of a model runner's forward pass, the one that vLLM calls V1."""

    def __init__(self, runner: Any, frames: FrameMaker | None) -> None:
        self._runner = runner
        self._model: TakesRows = runner.get_model()
        self._frames = frames
        self._sources: dict[str, Source] = {}
        self._forward = runner._model_forward
        runner._model_forward = self

    def __call__(self, **inputs: Any) -> Any:
        takers = row_takers(self._runner)
        if not takers:
            return self._forward(**inputs)
        self._forget()
        if self._frames is not None:
            self._frames.make(takers, inputs["inputs_embeds"])
        self._put_in(takers, inputs["inputs_embeds"])
        self._locate(takers, inputs["positions"])
        output = self._forward(**inputs)
        if self._frames is not None:
            self._frames.keep(takers, output)
        return output

    def _put_in(self, takers: Sequence[Taker], embedded: torch.Tensor) -> None:
        given: dict[RowKind, tuple[list[int], list[torch.Tensor]]] = {}
        for taker in takers:
            source = self._sources.setdefault(taker.request_id, Source())
            source.take(taker.extra[ROWS_KEY])
            for place, position in taker.places:
                row, kind = source.at(position)
                places, rows = given.setdefault(kind, ([], []))
                places.append(place)
                rows.append(row)
        for kind, (places, rows) in given.items():
            where = on_device(torch.tensor(places), embedded.device)
            projected = self._model.input_rows(on_device(torch.stack(rows), embedded.device), kind)
            if kind is RowKind.ADDED:
                embedded.index_add_(0, where, projected.to(embedded.dtype))
            else:
                embedded.index_copy_(0, where, projected.to(embedded.dtype))

    def _locate(self, takers: Sequence[Taker], positions: torch.Tensor) -> None:
        """vLLM has counted the tokens, as it knows nothing of what they stand for."""
        located = [
            (place, self._sources[taker.request_id].located(position))
            for taker in takers
            if self._sources[taker.request_id].positions is not None
            for place, position in taker.places
        ]
        if located:
            where, values = (torch.tensor(part) for part in zip(*located, strict=True))
            positions[:, on_device(where, positions.device)] = on_device(values, positions.device).T

    def _forget(self) -> None:
        for request_id in self._sources.keys() - self._runner.requests.keys():
            del self._sources[request_id]
