"""Which token comes next: a request's sampling parameters by vLLM's rules, with transformers' processors."""

from collections.abc import Iterator, Sequence

import torch
from transformers import (
    LogitsProcessorList,
    MinNewTokensLengthLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
)

from omni_runtime.engines.ar.sampling import Sampling
from omni_runtime.engines.ar.step import Candidate, Chosen
from omni_runtime.stepping.warpers import Warper, warpers


class Choice:
    """Of one request. Its dice are its own, so that no neighbour changes what it gets."""

    def __init__(self, sampling: Sampling, prompt_length: int, ends: Sequence[int], device: torch.device) -> None:
        """`ends` are the tokens that may not come before `min_tokens` others."""
        self._sampling = sampling
        self._is_greedy = self._number("temperature", 1.0) == 0
        self._processors = LogitsProcessorList(self._lined_up(prompt_length, ends, device))
        self._dice = torch.Generator(device)
        seed = sampling.get("seed")
        if isinstance(seed, int):
            self._dice.manual_seed(seed)
        else:
            self._dice.seed()

    def choose(self, token_ids: torch.Tensor, logits: torch.Tensor) -> int:
        """`token_ids` (1, length) are the prompt's and those since; `logits` (vocabulary,) of what follows."""
        scores = self._processors(token_ids, logits[None].clone())
        if self._is_greedy:
            return int(scores.argmax())
        return int(torch.multinomial(scores.softmax(-1), 1, generator=self._dice))

    def likelihoods(self, logits: torch.Tensor, token_id: int) -> tuple[Chosen, ...]:
        """Of the chosen token and the likeliest ones, before any parameter changed them; none unless asked for."""
        top = self._sampling.get("logprobs")
        if not isinstance(top, int):
            return ()
        logprobs = logits.log_softmax(-1)
        best = logprobs.topk(top)
        candidates = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        chosen = Candidate(token_id, float(logprobs[token_id]))
        return (Chosen(chosen, tuple(Candidate(identifier, value) for identifier, value in candidates)),)

    def _lined_up(self, prompt_length: int, ends: Sequence[int], device: torch.device) -> Iterator[Warper]:
        """In vLLM's order."""
        least = int(self._number("min_tokens", 0))
        if least and ends:
            yield MinNewTokensLengthLogitsProcessor(prompt_length, least, list(ends), device=str(device))
        if (repeated := self._number("repetition_penalty", 1.0)) != 1:
            yield RepetitionPenaltyLogitsProcessor(repeated)
        present, frequent = self._number("presence_penalty", 0.0), self._number("frequency_penalty", 0.0)
        if present or frequent:
            yield OccurrencePenalties(prompt_length, present, frequent)
        temperature, top_k, top_p, min_p = (
            self._number(name, off)
            for name, off in (("temperature", 1.0), ("top_k", 0), ("top_p", 1.0), ("min_p", 0.0))
        )
        yield from warpers(temperature, int(top_k), top_p, min_p)

    def _number(self, name: str, default: float) -> float:
        value = self._sampling.get(name, default)
        assert isinstance(value, int | float)
        return value


class OccurrencePenalties:
    """OpenAI's presence and frequency penalties, which count what was made and not the prompt."""

    def __init__(self, prompt_length: int, presence: float, frequency: float) -> None:
        self._prompt_length = prompt_length
        self._presence = presence
        self._frequency = frequency

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        made = input_ids[0, self._prompt_length :]
        counts = torch.bincount(made, minlength=scores.shape[-1]).to(scores)
        return scores - self._presence * (counts > 0).to(scores) - self._frequency * counts
