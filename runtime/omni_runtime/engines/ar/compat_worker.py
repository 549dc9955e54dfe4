"""The seams inside vLLM's own processes: executors that end with their parent, and calls that we add to its workers.

vLLM imports it by name in the processes that it starts.
"""

import ctypes
import logging
import multiprocessing
import os
import signal
from typing import Any

from vllm.v1.executor.multiproc_executor import MultiprocExecutor
from vllm.v1.executor.uniproc_executor import UniProcExecutor

PR_SET_PDEATHSIG = 1

logging.getLogger("vllm").setLevel(logging.ERROR)


class OneProcess(UniProcExecutor):  # type: ignore[misc]
    """The model in the process of vLLM's scheduler."""

    def _init_executor(self) -> None:
        die_with_parent()
        super()._init_executor()


class ProcessPerDevice(MultiprocExecutor):  # type: ignore[misc]
    """Its workers end with vLLM's scheduler by themselves."""

    def _init_executor(self) -> None:
        die_with_parent()
        super()._init_executor()


class WorkerExtension:
    """vLLM mixes it into its worker class."""

    model_runner: Any

    def omni_weight_bytes(self) -> int:
        return sum(parameter.nbytes for parameter in self.model_runner.get_model().parameters())


def die_with_parent() -> None:
    """The kernel ends this process when the thread that started it ends, even by kill -9."""
    parent = multiprocessing.parent_process()
    if parent is None:
        raise RuntimeError("vLLM runs its scheduler in this very process, which is not how we start it")
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent.pid:
        os.kill(os.getpid(), signal.SIGKILL)
