"""The command line of the test clusters: `python -m tests.cluster COMMAND`. The Makefile's targets call it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.cluster.control import ControlPlane, Size
from tests.cluster.control_flags import Ports
from tests.cluster.errors import ClusterError
from tests.cluster.programs import Programs, ensure
from tests.cluster.recipes import CONTROL, RECIPES
from tests.cluster.settings import Settings
from tests.cluster.steps import Steps

Run = Callable[[argparse.Namespace, Settings, Steps], None]


def programs(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    built = ensure(settings, [RECIPES[name] for name in arguments.groups or RECIPES], steps)
    if arguments.paths:
        print("\n".join(f"{name} {path}" for name, path in built.items()))


def control_up(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    ensure(settings, CONTROL, steps)
    plane = _plane(arguments, settings, steps)
    plane.start()
    steps.total("control plane is up")
    print(f"export KUBECONFIG={plane.kubeconfig}")


def control_down(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    with steps.step("control plane ended, its state removed"):
        _plane(arguments, settings, steps).remove()


def _plane(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> ControlPlane:
    return ControlPlane(
        state=arguments.state or settings.control,
        programs=Programs(settings, CONTROL),
        ports=Ports(arguments.port_base or settings.control_port_base),
        size=arguments.size,
        steps=steps,
    )


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Run, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        return sub

    build = command("programs", programs, "build the Go programs that the cache lacks")
    build.add_argument("groups", nargs="*", metavar="GROUP", help=f"any of: {' '.join(RECIPES)}; default: all")
    build.add_argument("--paths", action="store_true", help="print where each program is")
    for name, run, text in (
        ("control-up", control_up, "start a control plane as plain processes, with fake accelerator nodes"),
        ("control-down", control_down, "end the control plane and remove its state"),
    ):
        sub = command(name, run, text)
        sub.add_argument("--state", type=Path, help="its state folder; another one, another control plane")
        sub.add_argument("--port-base", type=int, help="the first of five loopback ports")
        sub.add_argument("--size", type=Size, choices=list(Size), default=Size.NODES)
    return top


def main(words: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(words)
    settings = Settings.from_environment(os.environ)
    try:
        arguments.run(arguments, settings, Steps())
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
