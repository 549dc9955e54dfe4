"""The seams inside vLLM's own processes: executors that end with their parent, and calls that we add to its workers.

vLLM imports it by name in the processes that it starts.
"""

import ctypes
import logging
import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import Any

import torch
from vllm import ModelRegistry
from vllm.v1.executor.multiproc_executor import MultiprocExecutor
from vllm.v1.executor.uniproc_executor import UniProcExecutor

from omni_runtime.engines.ar.frames import FrameMaker
from omni_runtime.engines.ar.row_input import RowInput
from omni_runtime.engines.ar.settings import MODELS_KEY
from omni_runtime.engines.ar.state_socket import StateSocket
from omni_runtime.engines.ar.takers import STATES_KEY

PR_SET_PDEATHSIG = 1

logging.getLogger("vllm").setLevel(logging.ERROR)


class OneProcess(UniProcExecutor):  # type: ignore[misc]
    """The model in the process of vLLM's scheduler."""

    def _init_executor(self) -> None:
        die_with_parent()
        register_models(self.vllm_config.additional_config.get(MODELS_KEY, {}))
        super()._init_executor()


class ProcessPerDevice(MultiprocExecutor):  # type: ignore[misc]
    """Its workers end with vLLM's scheduler by themselves."""

    def _init_executor(self) -> None:
        die_with_parent()
        super()._init_executor()


class WorkerExtension:
    """vLLM mixes it into its worker class."""

    model_runner: Any
    rank: int

    def omni_take_rows(self, frames_address: str | None) -> None:
        """From now on, requests may bring rows as their input; frames that the model makes leave for the address."""
        with torch.inference_mode():
            frames = None if frames_address is None else FrameMaker(self.model_runner, frames_address)
        RowInput(self.model_runner, frames)

    def omni_send_states(self, layers: list[int], address: str) -> None:
        """From now on, each step's states leave for `address`; every rank has them, and the first one sends them."""
        if self.rank == 0:
            StateSender(self.model_runner, layers, address)

    def omni_weight_bytes(self) -> int:
        return sum(parameter.nbytes for parameter in self.model_runner.get_model().parameters())


def register_models(models: Mapping[str, str]) -> None:
    """Classes of ours, each "module:Class", for this process. Registered by name alone, vLLM would look at each in one
    more process."""
    for architecture, implementation in models.items():
        ModelRegistry.register_model(architecture, resolve_name(implementation))


def die_with_parent() -> None:
    """The kernel ends this process when the thread that started it ends, even by kill -9."""
    parent = multiprocessing.parent_process()
    if parent is None:
        raise RuntimeError("vLLM runs its scheduler in this very process, which is not how we start it")
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent.pid:
        os.kill(os.getpid(), signal.SIGKILL)


class StateSender:
    """Wraps a model runner's forward pass, outside of what is captured in a graph.

    A request that wants its states has a key under STATES_KEY. Layers are counted as in transformers' `hidden_states`;
    the runner is the one that vLLM calls V1.
    """

    def __init__(self, runner: Any, layers: list[int], address: str) -> None:
        self._runner = runner
        self._layers = layers
        self._kept: dict[int, torch.Tensor] = {}
        self._socket = StateSocket(address)
        for layer in layers:
            if layer > 0:
                decoder_layers(runner.get_model())[layer - 1].register_forward_hook(partial(self._keep, layer))
        self._forward = runner._model_forward
        runner._model_forward = self

    def __call__(self, **inputs: Any) -> Any:
        output = self._forward(**inputs)
        if wanted := list(self._wanted()):
            if 0 in self._layers:
                self._kept[0] = self._embedded(inputs)
            self._kept[-1] = output[0] if isinstance(output, tuple) else output
            self._send(wanted)
        self._kept.clear()
        return output

    def _embedded(self, inputs: Mapping[str, Any]) -> Any:
        """Media are in their embeddings already; a model of text alone embeds its tokens itself."""
        given = inputs.get("inputs_embeds")
        return self._runner.get_model().embed_input_ids(inputs["input_ids"]) if given is None else given

    def _keep(self, layer: int, _module: Any, _inputs: Any, output: Any) -> None:
        """vLLM's layers leave the residual apart, for the next one to add."""
        self._kept[layer] = output[0] + output[1] if isinstance(output, tuple) else output

    def _wanted(self) -> Iterator["Rows"]:
        batch, starts = self._runner.input_batch, self._runner.query_start_loc.np
        for place, request_id in enumerate(batch.req_ids[: batch.num_reqs]):
            params = self._runner.requests[request_id].sampling_params
            key = ((params and params.extra_args) or {}).get(STATES_KEY)
            if key is not None:
                computed = int(batch.num_computed_tokens_cpu[place])
                yield Rows(key, computed, int(starts[place]), int(starts[place + 1]))

    def _send(self, wanted: list["Rows"]) -> None:
        tensors = [torch.cat([self._kept[layer][rows.start : rows.end] for rows in wanted]) for layer in self._layers]
        self._socket.send([(rows.key, rows.position, rows.end - rows.start) for rows in wanted], tensors)


@dataclass(frozen=True)
class Rows:
    """Where a request's tokens are in a step's batch, and at which position of the request they begin."""

    key: str
    position: int
    start: int
    end: int


def decoder_layers(model: Any) -> Any:
    """The language model's list of layers; towers for pictures and sound have lists of their own."""
    found = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.ModuleList) and name.endswith("model.layers")
    }
    if len(found) != 1:
        raise RuntimeError(f"the layers of the language model are not to be told apart: {sorted(found)}")
    return next(iter(found.values()))
