"""A text model on transformers' own layers: an answer is a run of steps, a token each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload, Value
from omni_runtime.engines.ar.items import Spelling
from omni_runtime.engines.ar.prompts import Prompt, Prompts
from omni_runtime.engines.ar.sampling import Sampling
from omni_runtime.engines.ar.step import FinishReason, Step
from omni_runtime.writing.choice import Choice
from omni_runtime.writing.layers import Layers, Reading
from omni_runtime.writing.media_inputs import MediaInputs
from omni_runtime.writing.told_text import ToldText


@dataclass(frozen=True)
class Written:
    """A step, and the states of the positions from `first` on that were read for it: (positions, width) by layer.

    `positions` is the prompt's, with its first step, as of a Reading.
    """

    step: Step
    first: int
    states: Mapping[int, torch.Tensor]
    positions: torch.Tensor | None = None


@dataclass
class Draft:
    """An answer in the making."""

    reading: Reading
    choice: Choice
    text: ToldText
    sampling: Sampling
    prompt_ids: tuple[int, ...]
    ends: frozenset[int]
    most: int
    made: list[int] = field(default_factory=list)

    @property
    def least(self) -> int:
        value = self.sampling.get("min_tokens", 0)
        assert isinstance(value, int)
        return value


@dataclass(frozen=True)
class Reader:
    """What turns payloads into the model's inputs; `media` is None if the checkpoint has no processor."""

    prompts: Prompts
    media: MediaInputs | None


class Writer:
    """Everything happens on the step thread. `defaults` are of the checkpoint, under what a request says."""

    def __init__(self, layers: Layers, reader: Reader, max_length: int) -> None:
        self._layers = layers
        self._reader = reader
        self._max_length = max_length
        self.spelling = Spelling(reader.prompts.tokenizer)

    @property
    def told_layers(self) -> Sequence[int]:
        """Whose states it tells."""
        return self._layers.hidden_layers

    @property
    def modules(self) -> Sequence[torch.nn.Module]:
        return (self._layers.module,)

    def test_turns(self) -> Iterator[object]:
        """One token after one token."""
        yield from self._turns(Prompt("prompt_token_ids", token_ids=(0,)), {"max_tokens": 1, "ignore_eos": True})

    @cached_property
    def defaults(self) -> Mapping[str, Value]:
        """As vLLM reads a checkpoint's generation_config.json, in which it minds no `do_sample`."""
        config = self._layers.module.generation_config
        names = ("repetition_penalty", "temperature", "top_k", "top_p", "min_p")
        found = {name: getattr(config, name, None) for name in names} | {"max_tokens": config.max_new_tokens}
        return {name: value for name, value in found.items() if value is not None}

    def turns(self, payload: Payload, sampling: Sampling) -> Iterator[Written | None]:
        """Work for the step thread; OmniError if the request cannot be answered."""
        yield from self._turns(self._reader.prompts.prompt(payload), sampling)

    def _turns(self, prompt: Prompt, sampling: Sampling) -> Iterator[Written | None]:
        draft = self._begun(prompt, {**self.defaults, **sampling})
        while True:
            written = self._written(draft)
            yield written
            if written.step.finish_reason is not None:
                return
            yield None

    def _begun(self, prompt: Prompt, sampling: Sampling) -> Draft:
        reading = self._layers.open(self._inputs(prompt))
        prompt_ids = tuple(reading.token_ids[0].tolist())
        room = self._max_length - len(prompt_ids)
        if room < 1:
            text = f"the prompt has {len(prompt_ids)} tokens; with its answer it may have {self._max_length} at most"
            raise OmniError(ErrorCode.INVALID_REQUEST, text, prompt.param)
        asked = sampling.get("max_tokens", room)
        assert isinstance(asked, int)
        ends = self._ends(sampling)
        choice = Choice(sampling, len(prompt_ids), sorted(ends), reading.token_ids.device)
        told = ToldText(self._reader.prompts.tokenizer.backend_tokenizer, prompt_ids, sampling)
        return Draft(reading, choice, told, sampling, prompt_ids, ends, min(asked, room))

    def _inputs(self, prompt: Prompt) -> Mapping[str, Any]:
        if prompt.text is None:
            return {"input_ids": torch.tensor([prompt.token_ids])}
        if self._reader.media is None:
            raise OmniError(ErrorCode.INVALID_REQUEST, "this model reads text alone", prompt.param)
        return self._reader.media.of(prompt)

    def _written(self, draft: Draft) -> Written:
        first = draft.reading.length_read
        made = self._layers.read(draft.reading)
        token_id = draft.choice.choose(draft.reading.token_ids, made.logits)
        draft.reading.add(token_id)
        draft.made.append(token_id)
        reason, stop = self._end(draft, token_id)
        step = Step(
            token_ids=(token_id,),
            text=draft.text.told(is_over=reason is not None),
            prompt_token_ids=draft.prompt_ids if len(draft.made) == 1 else None,
            finish_reason=reason,
            stop_reason=stop,
            logprobs=draft.choice.likelihoods(made.logits, token_id),
        )
        return Written(step, first, made.states, None if first else draft.reading.positions)

    def _end(self, draft: Draft, token_id: int) -> tuple[FinishReason | None, str | int | None]:
        """Whether this token ends the answer, and what of the request's own wishes brought that about."""
        if token_id in draft.ends:
            return "stop", None if token_id in self._own_ends else token_id
        draft.text.add(token_id, may_stop=len(draft.made) >= draft.least)
        if draft.text.stop is not None:
            return "stop", draft.text.stop
        return ("length" if len(draft.made) >= draft.most else None), None

    def _ends(self, sampling: Sampling) -> frozenset[int]:
        asked = sampling.get("stop_token_ids") or []
        assert isinstance(asked, Sequence)
        own = () if sampling.get("ignore_eos") is True else self._own_ends
        return frozenset((*own, *(token_id for token_id in asked if isinstance(token_id, int))))

    @cached_property
    def _own_ends(self) -> frozenset[int]:
        """What the checkpoint says ends an answer."""
        told = self._layers.module.generation_config.eos_token_id
        ends = told if isinstance(told, list) else [told, self._reader.prompts.tokenizer.eos_token_id]
        return frozenset(end for end in ends if end is not None)
