"""Runs the stages of one pod, a worker each: `python -m omni_runtime.local.group --group-file FILE`.

They live and die together: when one ends, the others are told to, and this process ends with its exit code and its last
words. The kubelet then starts all of them again.
"""

import asyncio
import logging
import os
import signal
import sys
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server
from pydantic import ValidationError

from omni_contract.wire.exit_codes import ExitCode
from omni_contract.wire.group_file import GroupFile, GroupMember
from omni_contract.wire.logs import configure_logging
from omni_contract.wire.names import GROUP_FILE_PATH, GROUP_HEALTH_PORT
from omni_runtime.local.group_health import GroupHealth
from omni_runtime.local.plan import ProcessPlan
from omni_runtime.local.process import Bond, ChildProcess, describe_exit

logger = logging.getLogger(__name__)

STOP_MARGIN_S = 5
"""Beyond a worker's own drain, in which it says what it left undone."""
AFTER_A_DEATH_S = 5
"""The others' requests need the stage that died; those that do not end soon are tried again elsewhere."""


class Member:
    """A worker that runs, and what it said last."""

    def __init__(self, member: GroupMember, process: ChildProcess, say: Callable[[str], None]) -> None:
        self.name = member.name
        self.last_line = ""
        self._drain_s = member.drain_timeout_s
        self._process = process
        self._say = say

    async def wait(self) -> int:
        """The exit code, once its last line has been passed on."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._process.read_lines(self._take))
            return await self._process.wait()

    async def stop(self, timeout_s: float | None = None) -> None:
        await self._process.stop(self._drain_s + STOP_MARGIN_S if timeout_s is None else timeout_s)

    def _take(self, line: str) -> None:
        self.last_line = line or self.last_line
        self._say(line)


async def run_group(
    file: GroupFile, health_address: str, environment: Mapping[str, str], say: Callable[[str], None]
) -> int:
    """Until SIGTERM, or until one of them ends; the exit code. Call from the main thread."""
    bond = Bond()
    stopping = _terminated()
    try:
        members = [Member(one, await _start(one, bond, environment), say) for one in file.members]
        async with _answering(GroupHealth([one.health for one in file.members]), health_address):
            return await _live(members, stopping, say)
    finally:
        bond.close()


async def _live(members: list[Member], stopping: asyncio.Event, say: Callable[[str], None]) -> int:
    ends = {asyncio.create_task(member.wait()): member for member in members}
    stop = asyncio.create_task(stopping.wait())
    await asyncio.wait((*ends, stop), return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    first = next((end for end in ends if end.done()), None)
    was_told = stopping.is_set()
    await asyncio.gather(*(member.stop(None if was_told else AFTER_A_DEATH_S) for member in members))
    codes = await asyncio.gather(*ends)
    if was_told or first is None:
        return next((_exit_code(code) for code in codes if code != ExitCode.OK), ExitCode.OK)
    dead, code = ends[first], first.result()
    logger.error('stage "%s" %s; its pod ends with it', dead.name, describe_exit(code))
    if code > 0:
        # The last line of a pod's log is what its status tells: the stage's own reason, if it had time to say one.
        say(dead.last_line)
    return _exit_code(code)


def _exit_code(code: int) -> int:
    """As a shell says it: 128 and the number of the signal."""
    return 128 - code if code < 0 else code


async def _start(member: GroupMember, bond: Bond, environment: Mapping[str, str]) -> ChildProcess:
    plan = ProcessPlan(
        name=member.name,
        module="omni_runtime.worker",
        arguments=member.arguments,
        environment=member.environment,
        health=member.health,
        start_timeout_s=0,
        stop_timeout_s=member.drain_timeout_s + STOP_MARGIN_S,
    )
    return await ChildProcess.start(plan, bond, environment)


@asynccontextmanager
async def _answering(health: GroupHealth, address: str) -> AsyncIterator[None]:
    server = grpc.aio.server()
    add_HealthServicer_to_server(health, server)
    server.add_insecure_port(address)
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)
        await health.close()


def _terminated() -> asyncio.Event:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    return told


def main() -> int:
    arguments = _parser().parse_args()
    log = configure_logging(as_json=True)
    try:
        file = GroupFile.model_validate_json(arguments.group_file.read_bytes())
    except (OSError, ValidationError) as error:
        logger.error("group file %s cannot be used: %s", arguments.group_file, " ".join(str(error).split()))
        return ExitCode.MISCONFIGURED
    return asyncio.run(run_group(file, f"0.0.0.0:{arguments.health_port}", dict(os.environ), log.pass_on))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m omni_runtime.local.group", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--group-file", type=Path, default=Path(GROUP_FILE_PATH), help="JSON file of the group")
    parser.add_argument("--health-port", type=int, default=GROUP_HEALTH_PORT, help="where the kubelet asks")
    return parser


if __name__ == "__main__":
    sys.exit(main())
