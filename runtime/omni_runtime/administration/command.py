"""`omni control CALL [STAGE…]`: one line for each worker that was asked."""

import asyncio
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from os import getuid

import grpc

from omni_contract.cli.command import Command
from omni_contract.wire.stage_pb2_grpc import ControlStub
from omni_runtime.administration.calls import CALLS, Call
from omni_runtime.administration.targets import Target, UnknownTargetError, targets
from omni_runtime.local.runtime_directory import runtime_root

DONE, REFUSED, MISNAMED = 0, 1, 2


def run(arguments: Namespace) -> int:
    root = runtime_root(os.environ.get("XDG_RUNTIME_DIR"), getuid())
    try:
        asked = targets(arguments.stages, root)
    except UnknownTargetError as error:
        sys.stderr.write(f"omni control: {error}\n")
        return MISNAMED
    return asyncio.run(ask_all(CALLS[arguments.call], asked, arguments))


async def ask_all(call: Call, asked: Sequence[Target], options: Namespace) -> int:
    """All at once, told in the order in which they were named."""
    said = await asyncio.gather(*(_ask(call, target, options) for target in asked))
    for target, (answer, is_refused) in zip(asked, said, strict=True):
        (sys.stderr if is_refused else sys.stdout).write(f"{target.name}: {answer}\n")
    return REFUSED if any(is_refused for _, is_refused in said) else DONE


async def _ask(call: Call, target: Target, options: Namespace) -> tuple[str, bool]:
    """What is to be said about the worker, and whether it refused."""
    async with grpc.aio.insecure_channel(target.address) as channel:
        try:
            return await call.ask(ControlStub(channel), options), False
        except grpc.aio.AioRpcError as error:
            return error.details() or error.code().name, True


def _configure(parser: ArgumentParser) -> None:
    calls = parser.add_subparsers(dest="call", metavar="CALL", required=True)
    for name, call in CALLS.items():
        one = calls.add_parser(name, help=call.help, description=call.help)
        one.add_argument(
            "stages",
            nargs="*" if name == "stats" else "+",
            metavar="STAGE",
            help="a stage or replica that `omni serve` runs here, or an address (HOST:PORT or unix:PATH)",
        )
        call.configure(one)


command = Command("control", "let stages sleep, wake, record profiles, drain", _configure, run)
