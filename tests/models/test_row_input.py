"""Rows and frames around a forward pass, on a runner that is none of vLLM's: what a dropped cache costs."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch

from omni_runtime.engines.ar.frames import FrameMaker
from omni_runtime.engines.ar.row_input import RowInput
from omni_runtime.engines.ar.takers import ROWS_KEY, SEED_KEY, STATES_KEY
from omni_runtime.families.protocol import RowKind
from tests.models.state_receiver import StateReceiver

WIDTH, BEGIN, CODES = 2, 3, 10


class Model:
    """Takes a row of a word as it is, that of a medium tenfold; makes the further codes of a frame of its state."""

    def input_rows(self, rows: torch.Tensor, kind: RowKind) -> torch.Tensor:
        return rows * 10 if kind is RowKind.MEDIUM else rows

    def further_codes(self, states: torch.Tensor, code_rows: torch.Tensor, draws: Any) -> tuple[Any, Any]:
        codes = (states[:, :1] + draws.places[:, None]).long() % CODES
        return codes, self.rows_of(codes)

    def rows_of(self, further_codes: torch.Tensor) -> torch.Tensor:
        return further_codes.repeat(1, WIDTH) * 100.0


class Runner:
    """One request, whose tokens and rows a test sets step by step."""

    device, dtype, max_num_reqs = torch.device("cpu"), torch.float32, 2
    model_config = SimpleNamespace(get_hidden_size=lambda: WIDTH, enforce_eager=True)

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.read = torch.empty((0, WIDTH))
        """In place of a cache: a state is the sum of all that was read up to it."""
        self.input_ids = SimpleNamespace(gpu=torch.zeros(16, dtype=torch.long))

    def get_model(self) -> Model:
        return Model()

    def _model_forward(self, inputs_embeds: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        self.seen.append((inputs_embeds.clone(), positions.clone()))
        self.read = torch.cat((self.read[: self.first], inputs_embeds))
        return self.read.cumsum(0)[self.first :]

    def step(self, tokens: list[int], position: int, part: dict[str, Any]) -> None:
        self.first = position
        extra = {ROWS_KEY: part, STATES_KEY: 1, SEED_KEY: 1}
        params = SimpleNamespace(extra_args=extra, temperature=0.0)
        self.requests = {"r": SimpleNamespace(sampling_params=params)}
        computed = numpy.array([position])
        self.input_batch = SimpleNamespace(req_ids=["r"], num_reqs=1, num_computed_tokens_cpu=computed)
        self.query_start_loc = SimpleNamespace(np=numpy.array([0, len(tokens)]))
        self.input_ids.gpu[: len(tokens)] = torch.tensor(tokens)
        embedded = torch.tensor(tokens, dtype=torch.float32)[:, None].repeat(1, WIDTH) / 10
        counted = torch.arange(position, position + len(tokens)).repeat(3, 1)
        self._model_forward(inputs_embeds=embedded, positions=counted)


def part(values: list[float], position: int, kinds: list[RowKind], located: Any = None) -> dict[str, Any]:
    rows = torch.tensor(values)[:, None].repeat(1, WIDTH)
    told = {"rows": rows.numpy().tobytes(), "dtype": "float32", "width": WIDTH, "position": position}
    return told | {"kinds": bytes(kinds), "begin": BEGIN, "positions": located}


PROMPT = part([1.0, 2.0, 3.0], 0, [RowKind.WORD, RowKind.MEDIUM, RowKind.ADDED], [[0, 0, 0], [1, 1, 5], [6, 6, 6]])
FIRST, LATER = part([4.0], 3, [RowKind.ADDED]), part([5.0, 6.0], 4, [RowKind.ADDED] * 2)


@pytest.fixture
def receivers() -> Iterator[list[StateReceiver]]:
    """Of frames that leave, each for a runner."""
    receivers = [StateReceiver(), StateReceiver()]
    yield receivers
    for receiver in receivers:
        receiver.close()


def received(receiver: StateReceiver) -> list[list[int]]:
    frames = []
    while receiver.has_more(200):
        frames.append(numpy.frombuffer(receiver.received()[1], dtype=numpy.int32).tolist())
    return frames


def speaking(runner: Runner) -> None:
    runner.step([7, 7, 7], 0, PROMPT)
    runner.step([1], 3, FIRST)
    runner.step([2], 4, LATER)
    runner.step([3], 5, LATER)
    runner.step([4], 6, LATER)


def test_rows_are_put_in_by_their_kind_and_the_last_one_holds_for_ever():
    runner = Runner()
    RowInput(runner, None)
    speaking(runner)
    told = [round(float(row[0]), 3) for embedded, _ in runner.seen for row in embedded]
    assert told == [1, 20, 3.7, 4.1, 5.2, 6.3, 6.4]
    assert [step[1][2].tolist() for step in runner.seen] == [[0, 5, 6], [7], [8], [9], [10]]


def test_a_cache_that_was_dropped_is_computed_anew_from_the_same_input_and_no_frame_is_made_again(
    receivers: list[StateReceiver],
):
    runner, frames = Runner(), receivers[0]
    RowInput(runner, FrameMaker(runner, frames.way))
    speaking(runner)
    assert [frame[0] for frame in received(frames)] == [1, 2, 3, 4]
    first = torch.cat([embedded for embedded, _ in runner.seen])
    runner.seen.clear()
    runner.step([7, 7, 7, 1, 2], 0, LATER)
    runner.step([3, 4], 5, LATER)
    torch.testing.assert_close(torch.cat([embedded for embedded, _ in runner.seen]), first)
    assert received(frames) == []
    runner.step([5], 7, LATER)
    assert [frame[0] for frame in received(frames)] == [5]


@pytest.mark.parametrize("parts", [[8], [5, 3], [7, 1], [2, 6]])
def test_the_frame_of_a_token_that_came_as_the_cache_was_dropped_is_made_of_its_own_state(
    receivers: list[StateReceiver], parts: list[int]
):
    kept, dropped = Runner(), Runner()
    for runner, receiver in zip((kept, dropped), receivers, strict=True):
        RowInput(runner, FrameMaker(runner, receiver.way))
        speaking(runner)
        received(receiver)
    kept.step([5], 7, LATER)
    tokens, position = [7, 7, 7, 1, 2, 3, 4, 5], 0
    for length in parts:
        dropped.step(tokens[position : position + length], position, LATER)
        position += length
    [expected], [made] = map(received, receivers)
    assert made == expected
