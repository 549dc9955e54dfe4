"""The seams inside vLLM's own processes: executors that end with their parent, and calls that we add to its workers.

vLLM imports it by name in the processes that it starts.
"""

import ctypes
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
from vllm import ModelRegistry, envs
from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend
from vllm.v1.executor.multiproc_executor import MultiprocExecutor
from vllm.v1.executor.uniproc_executor import UniProcExecutor
from vllm.v1.outputs import AsyncModelRunnerOutput

from omni_runtime.engines.ar.frames import FrameMaker
from omni_runtime.engines.ar.row_input import RowInput
from omni_runtime.engines.ar.settings import LAYERS_KEY, MODELS_KEY
from omni_runtime.engines.ar.state_ring import Way
from omni_runtime.engines.ar.state_sender import InnerLayers, send_states
from omni_runtime.engines.ar.state_socket import StateSocket
from omni_runtime.engines.ar.step_recorder import StepRecorder
from omni_runtime.engines.ar.whole_prompts import WholePrompts

PR_SET_PDEATHSIG = 1
FILE = "file://"
ATTENTION = "omni_runtime.engines.ar.compat_attention.CapturedAttention"

logging.getLogger("vllm").setLevel(logging.ERROR)
register_backend(AttentionBackendEnum.FLASH_ATTN, ATTENTION)


class OneProcess(UniProcExecutor):  # type: ignore[misc]
    """The model in the process of vLLM's scheduler."""

    def _init_executor(self) -> None:
        die_with_parent()
        register_models(self.vllm_config.additional_config.get(MODELS_KEY, {}))
        super()._init_executor()
        _prepare(self)

    def _distributed_args(self) -> tuple[str, int, int]:
        """The file by which a group of one finds itself goes with the sockets; elsewhere vLLM leaves it behind."""
        place, rank, local_rank = super()._distributed_args()
        if place.startswith(FILE):
            place = f"{FILE}{envs.VLLM_RPC_BASE_PATH}/{place.rpartition('/')[2]}"
        return place, rank, local_rank


class ProcessPerDevice(MultiprocExecutor):  # type: ignore[misc]
    """Its workers end with vLLM's scheduler by themselves."""

    def _init_executor(self) -> None:
        die_with_parent()
        super()._init_executor()
        _prepare(self)


class WorkerExtension:
    """vLLM mixes it into its worker class."""

    model_runner: Any
    rank: int
    omni_inner_layers: InnerLayers
    omni_recorder: StepRecorder

    def omni_draw_for_whole_prompts(self) -> None:
        """On CPUs; where there is a device, vLLM sees to it."""
        if self.model_runner.device.type == "cpu":
            WholePrompts(self.model_runner)

    def omni_keep_layers(self, layers: list[int]) -> None:
        """Once the model is loaded, and before graphs are captured."""
        self.omni_inner_layers = InnerLayers(self.model_runner, layers)

    def omni_take_rows(self, frames_way: Way | None) -> None:
        """From now on, requests may bring rows as their input; frames that the model makes leave by the way."""
        with torch.inference_mode():
            frames = None if frames_way is None else FrameMaker(self.model_runner, Way(*frames_way))
        RowInput(self.model_runner, frames)
        if frames is not None:
            _follow(self.model_runner, frames.socket)

    def omni_send_states(self, layers: list[int], way: Way) -> None:
        """From now on, each step's states leave by this way; every rank has them, and the first one sends them."""
        if self.rank == 0:
            sender = send_states(self.model_runner, layers, self.omni_inner_layers, Way(*way))
            _follow(self.model_runner, sender)

    def omni_start_profile(self, trace: str, max_steps: int) -> None:
        """The first rank records its next steps."""
        if self.rank == 0:
            self.omni_recorder = StepRecorder(self.model_runner, Path(trace), max_steps)

    def omni_stop_profile(self) -> tuple[int, str]:
        """The steps that were recorded, and why they could not be written, if so."""
        if self.rank != 0:
            return 0, ""
        try:
            return self.omni_recorder.finished(), ""
        except OSError as error:
            return 0, str(error.strerror)

    def omni_weight_bytes(self) -> int:
        return sum(parameter.nbytes for parameter in self.model_runner.get_model().parameters())


class Followed(AsyncModelRunnerOutput):  # type: ignore[misc]
    """A step's result, and what is done once it is there."""

    def __init__(self, output: Any, then: Callable[[], None]) -> None:
        self._output = output
        self._then = then

    def get_output(self) -> Any:
        made = self._output.get_output()
        self._then()
        return made


def _follow(runner: Any, socket: StateSocket) -> None:
    """What a step leaves in the socket is sent with the step's result."""
    sample = runner.sample_tokens

    def sampled(*arguments: Any, **named: Any) -> Any:
        output, left = sample(*arguments, **named), socket.take_left()
        if not left:
            return output
        if isinstance(output, AsyncModelRunnerOutput):
            return Followed(output, partial(socket.send_left, left))
        socket.send_left(left)
        return output

    runner.sample_tokens = sampled


def _prepare(executor: Any) -> None:
    executor.collective_rpc("omni_draw_for_whole_prompts")
    if (layers := executor.vllm_config.additional_config.get(LAYERS_KEY)) is not None:
        executor.collective_rpc("omni_keep_layers", args=(layers,))


def register_models(models: Mapping[str, str]) -> None:
    """Classes of ours, each "module:Class", for this process. Registered by name alone, vLLM would look at each in one
    more process."""
    for architecture, implementation in models.items():
        ModelRegistry.register_model(architecture, resolve_name(implementation))


def look_at_models(architectures: Sequence[str]) -> None:
    """At vLLM's own classes, in this process. By itself it starts one more process for that, in a pod at each start,
    which imports all that this one has: ten seconds, for two tenths of one."""
    for architecture in architectures:
        if (known := ModelRegistry.models.get(architecture)) is not None:
            ModelRegistry.register_model(architecture, known.load_model_cls())


def die_with_parent() -> None:
    """The kernel ends this process when the thread that started it ends, even by kill -9."""
    parent = multiprocessing.parent_process()
    if parent is None:
        raise RuntimeError("vLLM runs its scheduler in this very process, which is not how we start it")
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent.pid:
        os.kill(os.getpid(), signal.SIGKILL)
