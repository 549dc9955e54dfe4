"""Load on an orchestrator: closed loops, open loops, and what came of each request."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.orchestrator import Orchestrator, SessionRequest


@dataclass(frozen=True)
class Answer:
    """`took_s` counts from the request's arrival; `error` is None if it was answered."""

    took_s: float
    error: ErrorCode | None = None


Request = Callable[[int], Coroutine[None, None, Answer]]


def requester(orchestrator: Orchestrator, steps: Sequence[int] = (1,), timeout_s: float | None = None) -> Request:
    """Sends request NUMBER, with as many steps as `steps` says for it, in turn."""

    async def request(number: int) -> Answer:
        began_s = time.perf_counter()
        asked = SessionRequest(
            request_id=f"r-{number}",
            payload={"prompt": "a red fox"},
            parameters={"steps": steps[number % len(steps)]},
            timeout_s=timeout_s,
        )
        try:
            await orchestrator.run(asked)
        except OmniError as error:
            return Answer(time.perf_counter() - began_s, error.code)
        return Answer(time.perf_counter() - began_s)

    return request


async def closed_loop(request: Request, concurrency: int, seconds: float) -> list[Answer]:
    """So many clients, each sending its next request when the one before is answered."""
    answers: list[Answer] = []
    ends_s = time.perf_counter() + seconds
    numbers = iter(range(1 << 30))

    async def client() -> None:
        while time.perf_counter() < ends_s:
            answers.append(await request(next(numbers)))

    await asyncio.gather(*(client() for _ in range(concurrency)))
    return answers


async def open_loop(request: Request, rate: float, seconds: float, seed: int = 0) -> list[Answer]:
    """Requests come by a Poisson process of `rate` a second, whether those before are answered or not."""
    tasks = []
    began_s = time.perf_counter()
    for number, due_s in enumerate(_arrivals(rate, seconds, seed)):
        late_s = time.perf_counter() - began_s - due_s
        await asyncio.sleep(max(0.0, -late_s))
        tasks.append(asyncio.create_task(request(number)))
    return list(await asyncio.gather(*tasks))


def answered(answers: Sequence[Answer]) -> list[float]:
    """The times of those that were answered, in seconds, ascending."""
    return sorted(answer.took_s for answer in answers if answer.error is None)


def quantile(ascending: Sequence[float], share: float) -> float:
    return ascending[min(len(ascending) - 1, int(len(ascending) * share))]


def _arrivals(rate: float, seconds: float, seed: int) -> Iterator[float]:
    clock = random.Random(seed)
    due_s = clock.expovariate(rate)
    while due_s < seconds:
        yield due_s
        due_s += clock.expovariate(rate)
