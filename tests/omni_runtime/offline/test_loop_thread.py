import asyncio
import signal
import threading
from collections.abc import AsyncGenerator, Iterator

import pytest

from omni_runtime.offline.loop_thread import LoopThread


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread("test")
    yield thread
    thread.close()
    assert thread.is_closed


def test_work_gives_its_result_or_its_error(loop: LoopThread) -> None:
    assert loop.run(asyncio.sleep(0, "done")) == "done"
    with pytest.raises(TimeoutError):
        loop.run(asyncio.wait_for(asyncio.Event().wait(), 0))


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """As at a terminal: whoever is started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_cancels_the_work(loop: LoopThread) -> None:
    cancelled = threading.Event()

    async def work() -> None:
        try:
            # By then the caller waits for the work, rather than hands it over.
            await asyncio.sleep(0.1)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(KeyboardInterrupt):
        loop.run(work())
    assert cancelled.wait(5)


def test_leaving_an_iteration_early_closes_it(loop: LoopThread) -> None:
    closed = threading.Event()

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            for number in range(9):
                yield number
        finally:
            closed.set()

    assert list(loop.iterate(numbers())) == list(range(9))
    closed.clear()
    items = loop.iterate(numbers())
    assert next(items) == 0
    items.close()
    assert closed.is_set()
