"""A frontend in a process of its own, to be killed: it starts requests, says so once one is answered, and waits."""

import asyncio
import sys

import grpc

from omni_runtime.connectors.channels import CHANNEL_OPTIONS
from omni_runtime.transport.plain import PLAIN
from tests.omni_runtime.worker.frontend import start
from tests.omni_runtime.worker.worker_process import AttachedFrontend

REQUESTS = 8


async def main(address: str, side: int) -> None:
    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        frontend = await AttachedFrontend.to(channel, PLAIN, "denoiser")
        frontend.send(*(start(f"r-{i}", width=side, height=side) for i in range(REQUESTS)))
        await frontend.terminal("r-0")
        print("answered", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
