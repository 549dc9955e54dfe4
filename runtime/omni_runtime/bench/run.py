"""A run from its settings to its outcomes: requests leave when they are due, and no more at once than are allowed."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from random import Random
from typing import TextIO

from omni_runtime.bench.bodies import body_of
from omni_runtime.bench.client import Client, find_model, session_for
from omni_runtime.bench.datasets import Asked, requests_of
from omni_runtime.bench.outcome import Outcome
from omni_runtime.bench.sampler import arrivals
from omni_runtime.bench.settings import BenchError, BenchSettings, Load
from omni_runtime.offline.progress import Progress


@dataclass(frozen=True)
class Run:
    model: str
    asked: Sequence[Asked]
    outcomes: Sequence[Outcome]
    """One for each that was asked, in order."""
    duration_s: float


async def run(settings: BenchSettings, progress_to: TextIO) -> Run:
    """Raises BenchError if there is nothing to measure, or a warm-up fails."""
    asked = requests_of(settings)
    if not asked:
        raise BenchError(f"{settings.dataset_path}: it holds no request")
    async with session_for(settings.target) as session:
        model = await find_model(session, settings.target)
        bodies = [body_of(one, number, model, settings) for number, one in enumerate(asked)]
        await _warm_up(Client(session, settings.target, time.perf_counter()), bodies, settings.load.warmups)
        began_s = time.perf_counter()
        client = Client(session, settings.target, began_s)
        progress = Progress(len(asked), progress_to, time.monotonic, progress_to.isatty())
        shown = progress if settings.report.shows_progress else None
        sending = Sending(client, settings.load, shown)
        outcomes = await sending.send(bodies, due_times(asked, settings.load), [one.slo_s for one in asked])
    return Run(model, asked, outcomes, time.perf_counter() - began_s)


def due_times(asked: Sequence[Asked], load: Load) -> list[float]:
    """Seconds from the start: what a trace says, else as the rate has it."""
    drawn = arrivals(Random(load.seed), load.rate, load.burstiness)
    return [due_s if one.at_s is None else one.at_s for one, due_s in zip(asked, drawn, strict=False)]


class Sending:
    def __init__(self, client: Client, load: Load, progress: Progress | None) -> None:
        self._client = client
        self._gate = nullcontext() if load.max_concurrency is None else asyncio.Semaphore(load.max_concurrency)
        self._progress = progress

    async def send(
        self, bodies: Sequence[dict[str, object]], due_s: Sequence[float], slos_s: Sequence[float | None]
    ) -> list[Outcome]:
        async with asyncio.TaskGroup() as group:
            sent = zip(bodies, due_s, slos_s, strict=True)
            tasks = [group.create_task(self._one(body, at_s, slo_s)) for body, at_s, slo_s in sent]
        return [task.result() for task in tasks]

    async def _one(self, body: dict[str, object], due_s: float, slo_s: float | None) -> Outcome:
        await asyncio.sleep(max(0.0, self._client.began_s + due_s - time.perf_counter()))
        async with self._gate:
            outcome = await self._client.ask(body, slo_s)
        if self._progress is not None:
            self._progress.answered(has_failed=not outcome.is_ok)
        return outcome


async def _warm_up(client: Client, bodies: Sequence[dict[str, object]], count: int) -> None:
    """One after the other, with the first requests of the run."""
    for body in bodies[:count]:
        outcome = await client.ask(body)
        if not outcome.is_ok:
            raise BenchError(f"the warm-up failed: {outcome.error}")
