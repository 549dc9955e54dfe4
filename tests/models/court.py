"""Where judges work: a process that imports a judge's libraries once, however many questions there are to it.

usage: python court.py [--forks] < questions ; a question is a line of JSON: the judge's `script`, the `arguments` of
its `main`, and a `folder` with a file `given`, which it reads as its input. Answered with an exit code. With `--forks`
each judge works in a process of its own, which writes `said` and `complained` into the folder: not every library and no
device can be forked. Like the judges it imports nothing of ours: only libraries, and the judge.
"""

import gc
import importlib.util
import json
import os
import sys
import threading
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NoReturn


def main(forks: bool) -> None:
    # What is imported stays; to look through it for garbage again and again takes a quarter of the time.
    gc.disable()
    with os.fdopen(os.dup(1), "w") as answers:
        # Libraries greet on their standard output.
        os.dup2(2, 1)
        for line in sys.stdin:
            print(answered(forks, **json.loads(line)), file=answers, flush=True)


def answered(forks: bool, script: str, arguments: list[str], folder: str) -> int:
    judge = judge_at(Path(script))
    if not forks:
        work(judge, arguments, Path(folder))
        return 0
    gc.freeze()
    # A thread that holds a lock while its process forks holds it for ever in the new one.
    assert threading.active_count() == len(list(Path("/proc/self/task").iterdir())) == 1, "a library started a thread"
    child = os.fork()
    if child == 0:
        work_and_end(judge, arguments, Path(folder))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@cache
def judge_at(path: Path) -> ModuleType:
    """By its place: judges in two folders may have one name. What lies beside it, it finds by name."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    judge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(judge)
    return judge


def work(judge: ModuleType, arguments: list[str], folder: Path) -> None:
    with (folder / "given").open() as sys.stdin:
        judge.main(*arguments)


def work_and_end(judge: ModuleType, arguments: list[str], folder: Path) -> NoReturn:
    for descriptor, name in ((1, "said"), (2, "complained")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), descriptor)
    work(judge, arguments, folder)
    # Taking the interpreter apart would take a second.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(forks="--forks" in sys.argv)
