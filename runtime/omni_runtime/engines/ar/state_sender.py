"""Hidden states on their way out of the model, for vLLM's process: taken around the forward pass, outside of graphs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from omni_runtime.engines.ar.settings import LAST_LAYER
from omni_runtime.engines.ar.state_ring import Way
from omni_runtime.engines.ar.state_rows import StateRows, StepRows, states_key
from omni_runtime.engines.ar.state_socket import StateSocket


class InnerLayers:
    """What layers inside the model make, at places that stay the same: graphs that are captured write there, too.

    Made before they are.
    """

    def __init__(self, runner: Any, layers: Sequence[int]) -> None:
        shape = (runner.max_num_tokens, runner.model_config.get_hidden_size())
        self.states = {layer: torch.zeros(shape, dtype=runner.dtype, device=runner.device) for layer in layers}
        for layer in layers:
            decoder_layers(runner.get_model())[layer - 1].register_forward_hook(partial(self._keep, layer))

    def _keep(self, layer: int, _module: Any, _inputs: Any, output: Any) -> None:
        """vLLM's layers leave the residual apart, for the next one to add."""
        kept = self.states[layer]
        if isinstance(output, tuple):
            torch.add(output[0], output[1], out=kept[: len(output[0])])
        else:
            kept[: len(output)].copy_(output)


class ForwardStates:
    """Takes the place of a model runner's forward pass, the one that vLLM calls V1.

    A request that wants its states has a key under STATES_KEY. Layers are counted as in transformers' `hidden_states`.
    """

    def __init__(self, runner: Any, layers: Sequence[int], inner: InnerLayers, way: Way) -> None:
        self._runner = runner
        self._layers = layers
        self._inner = inner
        self._rows = StateRows(lambda request_id: states_key(runner.requests[request_id].sampling_params))
        self.socket = StateSocket(way, runner.device)
        self._forward = runner._model_forward
        runner._model_forward = self

    def __call__(self, **inputs: Any) -> Any:
        rows = self._wanted()
        if rows is None:
            return self._forward(**inputs)
        # Before the pass, which adds to them in their place.
        states = {0: self._embedded(inputs)} if 0 in self._layers else {}
        output = self._forward(**inputs)
        states |= self._inner.states | {-1: output[0] if isinstance(output, tuple) else output}
        parts = [_cut(states[layer], rows.pieces) for layer in self._layers]
        self.socket.send(rows.table, parts, dict(self._located(rows)))
        return output

    def _wanted(self) -> StepRows | None:
        batch = self._runner.input_batch
        requests = batch.num_reqs
        starts = self._runner.query_start_loc.np[: requests + 1]
        return self._rows.of_step(batch.req_ids[:requests], starts, batch.num_computed_tokens_cpu[:requests])

    def _embedded(self, inputs: Mapping[str, Any]) -> Any:
        """Media are in their embeddings already; a model of text alone embeds its tokens itself."""
        given = inputs.get("inputs_embeds")
        if given is not None:
            return given.clone()
        return self._runner.get_model().embed_input_ids(inputs["input_ids"])

    def _located(self, rows: StepRows) -> Iterator[tuple[int, list[list[int]]]]:
        """Prompts that begin in this step. Words alone are where they are counted, and need no telling."""
        if self._runner.uses_mrope:
            for key, request_id in self._rows.beginning(rows):
                request = self._runner.requests[request_id]
                if request.mm_features:
                    yield key, request.mrope_positions.T.tolist()


class StepStates:
    """Takes the place of a model runner's step, the one that vLLM calls V2, which takes less of the host's time.

    States of the last layer alone are at hand there.
    """

    def __init__(self, runner: Any, way: Way) -> None:
        self._runner = runner
        self._keys: dict[str, int] = {}
        self._rows = StateRows(self._keys.get)
        self.socket = StateSocket(way, runner.device)
        self._execute = runner.execute_model
        runner.execute_model = self

    def __call__(self, scheduled: Any, *arguments: Any, **named: Any) -> Any:
        for request_id in scheduled.finished_req_ids:
            self._keys.pop(request_id, None)
        for request in scheduled.scheduled_new_reqs:
            if (key := states_key(request.sampling_params)) is not None:
                self._keys[request.req_id] = key
        output = self._execute(scheduled, *arguments, **named)
        if self._keys and (made := self._runner.execute_model_state) is not None:
            self._send(made.input_batch, made.hidden_states)
        return output

    def _send(self, batch: Any, states: torch.Tensor) -> None:
        # Graphs are of a few sizes: what fills a batch up has ends, too.
        starts = batch.query_start_loc_np[: batch.num_reqs + 1]
        rows = self._rows.of_step(batch.req_ids, starts, batch.num_computed_tokens_np)
        if rows is not None:
            self.socket.send(rows.table, [_cut(states, rows.pieces)])


def send_states(runner: Any, layers: Sequence[int], inner: InnerLayers, way: Way) -> StateSocket:
    """From now on, the states of each step leave by this way."""
    if hasattr(runner, "_model_forward"):
        return ForwardStates(runner, layers, inner, way).socket
    if tuple(layers) == LAST_LAYER:
        return StepStates(runner, way).socket
    raise RuntimeError(f"vLLM took a model runner that gives its last layer alone, and not {sorted(layers)}")


def _cut(states: torch.Tensor, pieces: Sequence[slice]) -> torch.Tensor:
    return states[pieces[0]] if len(pieces) == 1 else torch.cat([states[piece] for piece in pieces])


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
