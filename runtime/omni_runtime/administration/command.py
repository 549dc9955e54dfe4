"""`omni control CALL [STAGE…]`: one line for each worker that was asked."""

import asyncio
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from os import getuid
from pathlib import Path

from omni_contract.cli.command import Command
from omni_contract.wire.names import FRONTEND
from omni_runtime.administration.asking import RefusedError, ask
from omni_runtime.administration.calls import CALLS, Call
from omni_runtime.administration.targets import Target, UnknownTargetError, remote_targets, targets
from omni_runtime.local.runtime_directory import runtime_root
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport, TransportError
from omni_runtime.transport.tls import TlsTransport

DONE, REFUSED, MISNAMED = 0, 1, 2


def run(arguments: Namespace) -> int:
    try:
        asked, transport = _asked(arguments)
    except (UnknownTargetError, TransportError) as error:
        sys.stderr.write(f"omni control: {error}\n")
        return MISNAMED
    return asyncio.run(ask_all(CALLS[arguments.call], asked, arguments, transport))


async def ask_all(call: Call, asked: Sequence[Target], options: Namespace, transport: Transport = PLAIN) -> int:
    """All at once, told in the order in which they were named."""
    said = await asyncio.gather(*(_ask(call, target, options, transport) for target in asked))
    for target, (answer, is_refused) in zip(asked, said, strict=True):
        (sys.stderr if is_refused else sys.stdout).write(f"{target.name}: {answer}\n")
    return REFUSED if any(is_refused for _, is_refused in said) else DONE


async def _ask(call: Call, target: Target, options: Namespace, transport: Transport) -> tuple[str, bool]:
    """What is to be said about the worker, and whether it refused."""
    try:
        return call.say(await ask(call, target.worker, options, transport), options), False
    except RefusedError as error:
        return str(error), True


def _asked(arguments: Namespace) -> tuple[list[Target], Transport]:
    if arguments.tls is None:
        root = runtime_root(os.environ.get("XDG_RUNTIME_DIR"), getuid())
        return targets(arguments.stages, root), PLAIN
    if arguments.model is None:
        raise UnknownTargetError("with --tls, name the model: its certificates are made out to it")
    found = remote_targets(arguments.stages)
    return found, TlsTransport(arguments.tls, FRONTEND, arguments.model, arguments.namespace)


def _configure(parser: ArgumentParser) -> None:
    calls = parser.add_subparsers(dest="call", metavar="CALL", required=True)
    for name, call in CALLS.items():
        one = calls.add_parser(name, help=call.help, description=call.help)
        one.add_argument(
            "stages",
            nargs="*" if name == "stats" else "+",
            metavar="STAGE",
            help="a stage or replica that `omni serve` runs here, or an address (HOST:PORT or unix:PATH); with --tls "
            "STAGE=HOST:PORT",
        )
        call.configure(one)
        _add_tls(one)


def _add_tls(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--tls", type=Path, metavar="DIR", help="the frontend's tls.crt, tls.key and ca.crt: speak mutual TLS"
    )
    parser.add_argument("--model", help="whose stages they are, where they speak TLS")
    parser.add_argument("--namespace", default="default", help="the model's namespace (default: %(default)s)")


command = Command("control", "let stages sleep, wake, record profiles, drain", _configure, run)
