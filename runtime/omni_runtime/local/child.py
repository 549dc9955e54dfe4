"""Runs a module that cannot outlive its supervisor: `python -m omni_runtime.local.child BOND PARENT MODULE ARG…`.

There are two bonds, since each has a hole: the kernel's parent-death signal is lost when a module changes its user, and
the watched pipe needs a moment of this interpreter. BOND is the read end of a pipe whose write end only the supervisor
holds; PARENT is the supervisor's process id.
"""

import ctypes
import os
import runpy
import signal
import sys
import threading

PR_SET_PDEATHSIG = 1


def main() -> None:
    bond, parent, module, *arguments = sys.argv[1:]
    _die_with(int(parent))
    threading.Thread(target=_end_with, args=(int(bond),), name="supervisor-bond", daemon=True).start()
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _die_with(parent: int) -> None:
    """Ask the kernel for SIGKILL when the parent ends; a parent that ended before we asked is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(f"supervisor {parent} is gone")


def _end_with(bond: int) -> None:
    """Nobody writes to the pipe; reading returns when its last writer has ended. Then end our whole process group."""
    os.set_inheritable(bond, False)
    os.read(bond, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
