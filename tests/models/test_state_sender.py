"""States of the last layer leave vLLM's V2 runner with the requests that they are of, however a batch is filled up."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from mmap import PAGESIZE
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch

from omni_runtime.engines.ar.state_ring import RING_BYTES, Way
from omni_runtime.engines.ar.state_sender import send_states
from omni_runtime.engines.ar.state_socket import StateSocket
from omni_runtime.engines.ar.states import States
from omni_runtime.engines.ar.takers import STATES_KEY
from tests.models.state_receiver import StateReceiver

pytestmark = pytest.mark.models


@dataclass
class Runner:
    """Makes a row of its number for each token, and fills the batch up to `padded` requests."""

    padded: int = 0
    execute_model_state: Any = None
    device = torch.device("cpu")
    computed: dict[str, int] = field(default_factory=dict)

    def execute_model(self, scheduled: Any) -> None:
        counts = scheduled.counts
        starts = numpy.cumsum([0, *counts.values()]).tolist()
        starts += [starts[-1]] * max(0, self.padded - len(counts))
        batch = SimpleNamespace(
            req_ids=list(counts),
            num_reqs=len(counts),
            query_start_loc_np=numpy.array(starts, dtype=numpy.int32),
            num_computed_tokens_np=numpy.array([self.computed.get(name, 0) for name in counts]),
        )
        for name, count in counts.items():
            self.computed[name] = self.computed.get(name, 0) + count
        states = torch.arange(starts[-1] + 3, dtype=torch.uint8)[:, None]
        self.execute_model_state = SimpleNamespace(input_batch=batch, hidden_states=states)

    def step(self, new: dict[str, int | None], counts: dict[str, int], finished: frozenset[str] = frozenset()) -> None:
        """New requests with their keys, and how many tokens of each request are in the step."""
        requests = [
            SimpleNamespace(req_id=name, sampling_params=SimpleNamespace(extra_args={STATES_KEY: key} if key else None))
            for name, key in new.items()
        ]
        self.execute_model(SimpleNamespace(scheduled_new_reqs=requests, finished_req_ids=finished, counts=counts))


@pytest.fixture
def receiver() -> Iterator[StateReceiver]:
    receiver = StateReceiver()
    yield receiver
    receiver.close()


def test_each_step_sends_the_rows_of_those_who_want_them(receiver: StateReceiver):
    runner = Runner(padded=4)
    send_states(runner, [-1], None, receiver.way)
    runner.step({"a": 7, "b": None, "c": 9}, {"a": 2, "b": 3, "c": 1})
    assert receiver.received() == ([[7, 0, 2], [9, 0, 1]], bytes([0, 1, 5]))
    runner.step({}, {"a": 1, "b": 1, "c": 1})
    assert receiver.received() == ([[7, 2, 1], [9, 1, 1]], bytes([0, 2]))
    runner.step({}, {"c": 1, "a": 1}, frozenset("b"))
    assert receiver.received() == ([[9, 2, 1], [7, 3, 1]], bytes([0, 1]))


def test_a_step_of_nobody_who_wants_states_sends_nothing(receiver: StateReceiver):
    runner = Runner()
    send_states(runner, [-1], None, receiver.way)
    runner.step({"a": None}, {"a": 4})
    runner.step({"b": 5}, {"b": 2}, frozenset("a"))
    assert receiver.received() == ([[5, 0, 2]], bytes([0, 1]))
    assert not receiver.has_more()


def test_inner_layers_are_refused_where_the_runner_keeps_them_to_itself():
    with pytest.raises(RuntimeError, match="gives its last layer alone"):
        send_states(Runner(), [0, -1], None, Way("inproc://nobody", ""))


@pytest.mark.parametrize("ring_bytes", [RING_BYTES, PAGESIZE], ids=["in the ring", "in the message"])
async def test_many_rows_and_few_come_to_the_requests_that_they_are_of(tmp_path: Path, ring_bytes: int):
    """Of two layers, step after step; in a message, the rows of the prompt in the middle have frames of their own."""
    width, counts, steps = 1024, (3, 100, 2), 80
    states = States((0, -1), tmp_path, ring_bytes)
    states.open()
    socket = StateSocket(states.way, torch.device("cpu"))
    with states.inbox() as first, states.inbox() as long, states.inbox() as last:
        inboxes = (first, long, last)
        for step in range(steps):
            lines = [(inbox.key, step * count, count) for inbox, count in zip(inboxes, counts, strict=True)]
            layers = [torch.randint(0, 255, (sum(counts), width), dtype=torch.uint8) for _ in range(2)]
            socket.send(numpy.array(lines), layers)
            start = 0
            for inbox, count in zip(inboxes, counts, strict=True):
                taken = await asyncio.wait_for(inbox.until((step + 1) * count), 5)
                for layer, made in zip((0, -1), layers, strict=True):
                    assert bytes(taken[layer].data) == made[start : start + count].numpy().tobytes()
                start += count
    await states.close()


async def test_a_worker_that_is_late_gets_all_rows_in_the_ring_and_in_messages(tmp_path: Path):
    """There is room for a few steps."""
    states = States((-1,), tmp_path, 8 * PAGESIZE)
    states.open()
    socket = StateSocket(states.way, torch.device("cpu"))
    with states.inbox() as inbox:
        rows = torch.arange(20 * PAGESIZE).remainder(251).to(torch.uint8).reshape(20, PAGESIZE)
        for number, row in enumerate(rows):
            socket.send(numpy.array([(inbox.key, number, 1)]), [row[None]])
        taken = await asyncio.wait_for(inbox.until(len(rows)), 5)
        assert bytes(taken[-1].data) == rows.numpy().tobytes()
    await states.close()
