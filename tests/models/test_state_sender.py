"""States of the last layer leave vLLM's V2 runner with the requests that they are of, however a batch is filled up."""

import asyncio
import itertools
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch
import zmq

from omni_runtime.engines.ar.state_sender import send_states
from omni_runtime.engines.ar.state_socket import StateSocket
from omni_runtime.engines.ar.states import States
from omni_runtime.engines.ar.takers import STATES_KEY

pytestmark = pytest.mark.models

NUMBERS = itertools.count()


@dataclass
class Runner:
    """Makes a row of its number for each token, and fills the batch up to `padded` requests."""

    padded: int = 0
    execute_model_state: Any = None
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
def sent():
    socket = zmq.Context.instance().socket(zmq.PULL)
    # A name is free again a little after its socket was closed.
    socket.bind(f"inproc://states-{next(NUMBERS)}")
    yield socket
    socket.close(linger=0)


def received(socket: Any) -> tuple[list[list[int]], list[int]]:
    """The table, and the rows behind it."""
    assert socket.poll(2000)
    _, table, rows = socket.recv_multipart()
    return numpy.frombuffer(table, dtype=numpy.int64).reshape(-1, 3).tolist(), list(rows)


def test_each_step_sends_the_rows_of_those_who_want_them(sent):
    runner = Runner(padded=4)
    send_states(runner, [-1], None, sent.LAST_ENDPOINT.decode())
    runner.step({"a": 7, "b": None, "c": 9}, {"a": 2, "b": 3, "c": 1})
    assert received(sent) == ([[7, 0, 2], [9, 0, 1]], [0, 1, 5])
    runner.step({}, {"a": 1, "b": 1, "c": 1})
    assert received(sent) == ([[7, 2, 1], [9, 1, 1]], [0, 2])
    runner.step({}, {"c": 1, "a": 1}, frozenset("b"))
    assert received(sent) == ([[9, 2, 1], [7, 3, 1]], [0, 1])


def test_a_step_of_nobody_who_wants_states_sends_nothing(sent):
    runner = Runner()
    send_states(runner, [-1], None, sent.LAST_ENDPOINT.decode())
    runner.step({"a": None}, {"a": 4})
    runner.step({"b": 5}, {"b": 2}, frozenset("a"))
    assert received(sent) == ([[5, 0, 2]], [0, 1])
    assert not sent.poll(0)


def test_inner_layers_are_refused_where_the_runner_keeps_them_to_itself():
    with pytest.raises(RuntimeError, match="gives its last layer alone"):
        send_states(Runner(), [0, -1], None, "inproc://nobody")


async def test_many_rows_and_few_come_to_the_requests_that_they_are_of(tmp_path: Path):
    """Of two layers; the rows of the prompt in the middle travel in frames of their own."""
    width, counts = 1024, (3, 100, 2)
    states = States((0, -1), tmp_path)
    states.open()
    with states.inbox() as first, states.inbox() as long, states.inbox() as last:
        inboxes = (first, long, last)
        table = numpy.array([(inbox.key, 0, count) for inbox, count in zip(inboxes, counts, strict=True)])
        layers = [torch.randint(0, 255, (sum(counts), width), dtype=torch.uint8) for _ in range(2)]
        StateSocket(states.address).send(table, layers)
        start = 0
        for inbox, count in zip(inboxes, counts, strict=True):
            taken = await asyncio.wait_for(inbox.until(count), 5)
            for layer, made in zip((0, -1), layers, strict=True):
                assert bytes(taken[layer].data) == made[start : start + count].numpy().tobytes()
            start += count
    await states.close()
