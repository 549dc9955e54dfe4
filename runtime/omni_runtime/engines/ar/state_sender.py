"""Hidden states on their way out of the model, for vLLM's process: taken around the forward pass, outside of graphs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from omni_runtime.engines.ar.state_socket import StateSocket
from omni_runtime.engines.ar.takers import STATES_KEY


class Rows(NamedTuple):
    """Where a request's tokens are in a step's batch, and at which position of the request they begin."""

    request_id: str
    key: str
    position: int
    start: int
    end: int


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


class StateSender:
    """Takes the place of a model runner's forward pass, the one that vLLM calls V1.

    A request that wants its states has a key under STATES_KEY. Layers are counted as in transformers' `hidden_states`.
    """

    def __init__(self, runner: Any, layers: Sequence[int], inner: InnerLayers, address: str) -> None:
        self._runner = runner
        self._layers = layers
        self._inner = inner
        self._socket = StateSocket(address)
        self._forward = runner._model_forward
        runner._model_forward = self

    def __call__(self, **inputs: Any) -> Any:
        output = self._forward(**inputs)
        if wanted := list(self._wanted()):
            outer = {-1: output[0] if isinstance(output, tuple) else output}
            if 0 in self._layers:
                outer[0] = self._embedded(inputs)
            states, pieces = self._inner.states | outer, joined(wanted)
            requests = [(rows.key, rows.position, rows.end - rows.start) for rows in wanted]
            located = dict(self._located(wanted))
            self._socket.send(requests, [_cut(states[layer], pieces) for layer in self._layers], located)
        return output

    def _embedded(self, inputs: Mapping[str, Any]) -> Any:
        """Media are in their embeddings already; a model of text alone embeds its tokens itself."""
        given = inputs.get("inputs_embeds")
        return self._runner.get_model().embed_input_ids(inputs["input_ids"]) if given is None else given

    def _wanted(self) -> Iterator[Rows]:
        """In plain numbers: this is done in every step, for every request."""
        batch, requests = self._runner.input_batch, self._runner.requests
        starts = self._runner.query_start_loc.np[: batch.num_reqs + 1].tolist()
        computed = batch.num_computed_tokens_cpu[: batch.num_reqs].tolist()
        for place, request_id in enumerate(batch.req_ids[: batch.num_reqs]):
            params = requests[request_id].sampling_params
            if params is not None and params.extra_args and (key := params.extra_args.get(STATES_KEY)) is not None:
                yield Rows(request_id, key, computed[place], starts[place], starts[place + 1])

    def _located(self, wanted: Sequence[Rows]) -> Iterator[tuple[str, list[list[int]]]]:
        """Prompts that begin in this step. Words alone are where they are counted, and need no telling."""
        for rows in wanted:
            if rows.position == 0 and self._runner.uses_mrope:
                request = self._runner.requests[rows.request_id]
                if request.mm_features:
                    yield rows.key, request.mrope_positions.T.tolist()


def joined(wanted: Sequence[Rows]) -> list[slice]:
    """Neighbours as one: where all requests want their states, the batch is one piece."""
    pieces: list[slice] = []
    for rows in wanted:
        if pieces and pieces[-1].stop == rows.start:
            pieces[-1] = slice(pieces[-1].start, rows.end)
        else:
            pieces.append(slice(rows.start, rows.end))
    return pieces


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
