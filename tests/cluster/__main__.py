"""The command line of the test clusters: `python -m tests.cluster COMMAND`. The Makefile's targets call it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from images.recipes import OF_PYTHON
from tests.cluster.control import ControlPlane, Size
from tests.cluster.control_flags import Ports
from tests.cluster.errors import ClusterError
from tests.cluster.kind.cluster import KindCluster
from tests.cluster.packages import ensure_if_possible
from tests.cluster.programs import Programs, ensure
from tests.cluster.recipes import CONTROL, RECIPES
from tests.cluster.settings import Settings
from tests.cluster.steps import Steps

FIELDS = {field.name for field in fields(Settings)}
Run = Callable[[argparse.Namespace, Settings, Steps], None]


def programs(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    built = ensure(settings, [RECIPES[name] for name in arguments.groups or RECIPES], steps)
    if arguments.paths:
        print("\n".join(f"{name} {path}" for name, path in built.items()))


def packages(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    ensure_if_possible(settings, steps, OF_PYTHON)


def control_up(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    ensure(settings, CONTROL, steps)
    plane = _plane(arguments, settings, steps)
    plane.start()
    steps.total("control plane is up")
    print(f"export KUBECONFIG={plane.kubeconfig}")


def control_down(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    with steps.step("control plane ended, its state removed"):
        _plane(arguments, settings, steps).remove()


def node_image(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    image = KindCluster(settings, steps).make_node_image()
    steps.total(f"{image} is in the cache")


def cluster_up(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    cluster = KindCluster(settings, steps)
    cluster.up()
    steps.total("cluster is up")
    print(f"export KUBECONFIG={cluster.kubeconfig}")


def cluster_down(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    KindCluster(settings, steps).down(wipe=arguments.wipe)
    steps.total("cluster is down")


def images_load(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    KindCluster(settings, steps).load(arguments.images)


def volumes(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    with steps.step(f"claims venv and models in namespace {arguments.namespace!r}"):
        KindCluster(settings, steps).make_volumes(arguments.namespace)


def docker(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    print(KindCluster(settings, steps).docker(*arguments.words), end="")


def status(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> None:
    plane = _plane(arguments, settings, steps)
    print(f"control plane: {' '.join(plane.running()) or 'nothing runs'}")
    print(f"kind cluster {settings.cluster!r}: {KindCluster(settings, steps).describe()}")


def _plane(arguments: argparse.Namespace, settings: Settings, steps: Steps) -> ControlPlane:
    return ControlPlane(
        state=arguments.state or settings.control,
        programs=Programs(settings, CONTROL),
        ports=Ports(arguments.port_base or settings.control_port_base),
        size=arguments.size,
        steps=steps,
    )


COMMANDS: tuple[tuple[str, Run, str], ...] = (
    ("packages", packages, "install the system's libraries that packages of Python need and this machine lacks"),
    ("programs", programs, "build the Go programs that the cache lacks"),
    ("control-up", control_up, "start a control plane as plain processes, with fake accelerator nodes"),
    ("control-down", control_down, "end the control plane and remove its state"),
    ("node-image", node_image, "make the kind node image from Go modules and Debian packages"),
    ("cluster-up", cluster_up, "make a kind cluster with one worker, or finish one that was interrupted"),
    ("cluster-down", cluster_down, "remove the kind cluster and everything that ran it"),
    ("images-load", images_load, "load images into the worker of the kind cluster"),
    ("volumes", volumes, "make the claims venv and models in a namespace of the kind cluster"),
    ("docker", docker, "run docker beside the kind cluster, for example: docker ps"),
    ("status", status, "say what runs"),
)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    subs = {}
    for name, run, text in COMMANDS:
        subs[name] = commands.add_parser(name, help=text, description=text)
        subs[name].set_defaults(run=run)
    _program_options(subs["programs"])
    for name in ("control-up", "control-down", "status"):
        _control_options(subs[name])
    for name in ("node-image", "cluster-up", "cluster-down", "images-load", "volumes", "docker", "status"):
        subs[name].add_argument("--cluster", help="the cluster's name; another one, another cluster")
    _folder_options(subs["cluster-up"])
    subs["cluster-down"].add_argument("--wipe", action="store_true", help="remove the loaded node image too")
    subs["images-load"].add_argument("images", nargs="+", metavar="IMAGE", help="an archive file, or a name in Docker")
    subs["volumes"].add_argument("namespace")
    subs["docker"].add_argument("words", nargs=argparse.REMAINDER)
    return top


def _program_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("groups", nargs="*", metavar="GROUP", help=f"any of: {' '.join(RECIPES)}; default: all")
    sub.add_argument("--paths", action="store_true", help="print where each program is")


def _control_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--state", type=absolute, help="its state folder; another one, another control plane")
    sub.add_argument("--port-base", type=int, help="the first of five loopback ports")
    sub.add_argument("--size", type=Size, choices=list(Size), default=Size.NODES)


def _folder_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--venv", type=absolute, help="the Python environment that pods see, read-only, at its own path")
    sub.add_argument("--models", type=absolute, help="the folder that pods see as the claim models")
    sub.add_argument("--api-port", type=int, dest="kind_api_port", help="loopback port of the API server")
    sub.add_argument("--node-port", type=int, dest="kind_node_port", help="loopback port of node port 30080")


def settings_of(arguments: argparse.Namespace, environment: Mapping[str, str]) -> Settings:
    """The defaults, with what the command line says instead."""
    settings = Settings.from_environment(environment)
    said: dict[str, Any] = {k: v for k, v in vars(arguments).items() if k in FIELDS and v is not None}
    return replace(settings, **said)


def absolute(path: str) -> Path:
    return Path(path).absolute()


def main(words: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(words)
    try:
        arguments.run(arguments, settings_of(arguments, os.environ), Steps())
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
