"""Frames of codes that a model makes of its tokens, one step later than the tokens: for vLLM's process.

A token is a frame's first code. With the state that it came from, the model makes the others; the sum of their rows
goes on top of the token's own, and the frame leaves over the socket for states. One that was made is not made again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy
import torch

from omni_runtime.engines.ar.frame_graphs import FrameGraphs
from omni_runtime.engines.ar.state_ring import Way
from omni_runtime.engines.ar.state_socket import StateSocket
from omni_runtime.engines.ar.takers import ROWS_KEY, SEED_KEY, STATES_KEY, Taker, on_device
from omni_runtime.families.code_predictor import Draws

GREEDY_BELOW = 1e-5
"""vLLM's own bound."""
NOBODY = -1
"""The key of a request that wants no frames."""


class MakesFrames(Protocol):
    """A model class of a family, as far as frames need it."""

    def further_codes(
        self, states: torch.Tensor, code_rows: torch.Tensor, draws: Draws
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Of shape (frames, groups - 1), and the sums of their rows, of shape (frames, width)."""
        ...

    def rows_of(self, further_codes: torch.Tensor) -> torch.Tensor:
        """These sums again."""
        ...

    def compile_frames(self) -> None:
        """Before they are captured."""
        ...


@dataclass
class Speech:
    """What is known of one request. `slot` is where the state of its last token is kept."""

    slot: int
    further: list[tuple[torch.Tensor, int]] = field(default_factory=list)
    """Of each frame, its further codes: a step's tensor and the row in it."""


@dataclass(frozen=True)
class Frame:
    taker: Taker
    place: int
    number: int
    speech: Speech


class FrameMaker:
    def __init__(self, runner: Any, way: Way) -> None:
        self._model: MakesFrames = runner.get_model()
        self._runner = runner
        self._speeches: dict[str, Speech] = {}
        width, self._device = runner.model_config.get_hidden_size(), runner.device
        self.socket = StateSocket(way, self._device)
        self._states = torch.zeros((runner.max_num_reqs, width), dtype=runner.dtype, device=self._device)
        self._further = self._model.further_codes
        if self._device.type == "cuda" and not runner.model_config.enforce_eager:
            self._model.compile_frames()
            self._further = FrameGraphs(self._model.further_codes, self._states)

    def make(self, takers: Sequence[Taker], embedded: torch.Tensor) -> None:
        """The frames of all tokens in the step that an earlier step has made; their rows are added to `embedded`."""
        new = []
        for taker in takers:
            speech = self._speech(taker.request_id)
            for place, position in taker.places:
                number = position - _begin(taker)
                if 0 <= number < len(speech.further):
                    codes, row = speech.further[number]
                    embedded[place] += self._model.rows_of(codes[row : row + 1])[0]
                elif number >= 0:
                    new.append(Frame(taker, place, number, speech))
        if new:
            self._make(new, embedded)

    def keep(self, takers: Sequence[Taker], output: torch.Tensor) -> None:
        """The state that each request's next token comes from.

        Where a cache that was dropped is computed anew in parts, that of the last token is there already.
        """
        places = [(self._speech(taker.request_id), taker) for taker in takers]
        slots = [(speech.slot, taker.end - 1) for speech, taker in places if _next_number(taker) >= len(speech.further)]
        if slots:
            where, last = on_device(torch.tensor(slots), self._device).unbind(1)
            self._states.index_copy_(0, where, output[last])

    def _make(self, frames: Sequence[Frame], embedded: torch.Tensor) -> None:
        numbers = torch.tensor([_numbers(frame) for frame in frames])
        places, slots, seeds, counts, is_greedy = on_device(numbers, self._device).unbind(1)
        draws = Draws(seeds, counts, is_greedy.bool())
        codes, sums = self._further(self._states[slots], embedded[places], draws)
        embedded.index_add_(0, places, sums)
        for row, frame in enumerate(frames):
            frame.speech.further.append((codes, row))
        first = self._runner.input_ids.gpu[places]
        table = numpy.array([(frame.taker.extra.get(STATES_KEY, NOBODY), frame.number, 1) for frame in frames])
        self.socket.send(table, [torch.cat((first[:, None], codes), dim=1).int()])

    def _speech(self, request_id: str) -> Speech:
        if request_id not in self._speeches:
            for ended in self._speeches.keys() - self._runner.requests.keys():
                del self._speeches[ended]
            taken = {speech.slot for speech in self._speeches.values()}
            slot = next(slot for slot in range(len(self._states)) if slot not in taken)
            self._speeches[request_id] = Speech(slot)
        return self._speeches[request_id]


def _begin(taker: Taker) -> int:
    """The position of the first token that is made."""
    return int(taker.extra[ROWS_KEY]["begin"])


def _next_number(taker: Taker) -> int:
    """Of the frame whose token comes from the part's last state."""
    return taker.position + taker.end - taker.start - _begin(taker)


def _numbers(frame: Frame) -> tuple[int, int, int, int, bool]:
    params, extra = frame.taker.params, frame.taker.extra
    return frame.place, frame.speech.slot, int(extra[SEED_KEY]), frame.number, params.temperature < GREEDY_BELOW
