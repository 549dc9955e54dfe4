"""Runs mooncake_master, which keeps the books of a store: `python -m omni_runtime.connectors.mooncake.master`.

It becomes that program, so that whoever started this process stops the master by stopping it.
"""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from omni_runtime.connectors.mooncake.library import EXTRAS

LIBRARY_MISSING = 3
WARNINGS_ONLY = {"GLOG_minloglevel": "1"}


def command(program: Path, arguments: Sequence[str]) -> list[str]:
    parser = ArgumentParser(prog="python -m omni_runtime.connectors.mooncake.master", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=50051, help="where stores join (default: %(default)s)")
    parser.add_argument("--admin-port", type=int, default=9003, help="/health and /metrics (default: %(default)s)")
    given = parser.parse_args(arguments)
    return [
        str(program),
        *("--rpc_address", given.host, "--rpc_port", str(given.port)),
        *("--metrics_host", given.host, "--metrics_port", str(given.admin_port)),
        "--enable_metric_reporting=false",
    ]


def program() -> Path | None:
    """The wheel brings it along."""
    found = find_spec("mooncake")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0], "mooncake_master")


def main() -> None:
    path = program()
    if path is None:
        sys.stderr.write(f'mooncake_master comes with the package "mooncake", which is not there; install {EXTRAS}\n')
        sys.exit(LIBRARY_MISSING)
    # Wheels do not always keep the mode of a program.
    if not os.access(path, os.X_OK):
        path.chmod(path.stat().st_mode | 0o111)
    arguments = command(path, sys.argv[1:])
    os.execve(arguments[0], arguments, {**os.environ, **WARNINGS_ONLY})


if __name__ == "__main__":
    main()
