"""What a worker says of itself by the Stats call; the census says what the operating system thinks of that."""

import asyncio
from collections.abc import Callable

import grpc

from omni_contract.wire.stage_pb2 import StatsRequest, WorkerStats
from omni_contract.wire.stage_pb2_grpc import ControlStub

ASK_AGAIN_S = 0.05


async def stats(address: str) -> WorkerStats:
    async with grpc.aio.insecure_channel(address) as channel:
        return await ControlStub(channel).Stats(StatsRequest(), wait_for_ready=True, timeout=10)


async def stats_when(address: str, is_right: Callable[[WorkerStats], bool], within_s: float) -> WorkerStats:
    """The first right answer; fails with the last wrong one when the time is up."""
    answer = await stats(address)
    try:
        async with asyncio.timeout(within_s):
            while not is_right(answer):
                await asyncio.sleep(ASK_AGAIN_S)
                answer = await stats(address)
    except TimeoutError:
        raise AssertionError(f"{address} after {within_s} s: {answer}") from None
    return answer


def holds_nothing(answer: WorkerStats) -> bool:
    return answer.running == answer.waiting == answer.payloads == answer.payload_bytes == 0
