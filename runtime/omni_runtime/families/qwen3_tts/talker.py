"""Qwen3-TTS's talker: a frame of codes of one speech at a time, as the qwen-tts package makes them.

It reads the request itself. The package drops the last frame of a speech that ends by its limit; this does not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from transformers import DynamicCache, Qwen2Tokenizer

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload, Value
from omni_runtime.families.checkpoint_part import load_module, read_config
from omni_runtime.families.qwen3_tts.cloning import Cloner, load_cloner
from omni_runtime.families.qwen3_tts.configuration import Qwen3TTSConfig
from omni_runtime.families.qwen3_tts.order import BASE, Order, Reference, order_of, task_of
from omni_runtime.families.qwen3_tts.prompt import (
    Prompt,
    PromptBuilder,
    Timbre,
    Wording,
    instruction_text,
    reference_text,
    speech_text,
)
from omni_runtime.families.qwen3_tts.sampling import FirstCodes, Sampling, checkpoint_defaults, sampling
from omni_runtime.families.qwen3_tts.talker_module import TalkerModule
from omni_runtime.library_logs import tame_transformers
from omni_runtime.stepping import weights
from omni_runtime.stepping.loading import LoadPlan, ModelLoadError
from omni_runtime.stepping.resident import Loading
from omni_runtime.stepping.tensors import to_array

SILENCE = Reference(to_array(torch.zeros(24_000)), 24_000, "a")
"""A second of it, for the test of encoders."""


@dataclass
class Speech:
    """What is known of one request."""

    sampling: Sampling
    generator: torch.Generator
    cache: DynamicCache
    said: torch.Tensor
    """The first codes of its frames, of shape (1, frames)."""
    order: Order | None = None
    wording: Wording = field(default_factory=lambda: Wording(()))
    prompt: Prompt | None = None
    last_frame: torch.Tensor | None = None
    """Of shape (groups, 1)."""
    is_heard: bool = False
    is_done: bool = False

    @property
    def frames(self) -> int:
        return int(self.said.shape[1])


class Talker:
    def __init__(
        self,
        module: TalkerModule,
        config: Qwen3TTSConfig,
        tokenizer: Qwen2Tokenizer,
        defaults: Mapping[str, Value],
        cloner: Cloner | None,
    ) -> None:
        self._cloner = cloner
        self._module = module
        self._config = config
        self._tokenizer = tokenizer
        self._defaults = defaults
        self._task = task_of(config)
        self._prompts = PromptBuilder(module, config)
        self._first_codes = FirstCodes(config.talker, module.device)

    @property
    def modules(self) -> list[torch.nn.Module]:
        return [self._module, *(self._cloner.modules if self._cloner else ())]

    def test_turns(self) -> Iterator[object]:
        speech = self.begin({"max_tokens": 2, "min_tokens": 2})
        speech.order = Order("a", reference=SILENCE if self._cloner else None)
        speech.wording = self._wording(speech.order)
        while (item := self.speak(speech)) is not None:
            yield item

    def begin(self, parameters: Mapping[str, Value]) -> Speech:
        chosen = sampling(parameters, self._defaults)
        device = self._module.device
        return Speech(
            sampling=chosen,
            generator=torch.Generator(device).manual_seed(chosen.seed),
            cache=DynamicCache(config=self._config.talker),
            said=torch.empty((1, 0), dtype=torch.long, device=device),
        )

    def hear(self, speech: Speech, item: Payload) -> None:
        speech.order = order_of(item, self._config)
        speech.wording = self._wording(speech.order)
        room = self._config.talker.max_position_embeddings
        if speech.wording.tokens >= room:
            raise OmniError(ErrorCode.INVALID_REQUEST, f"input: it has more than {room} tokens", "input")

    def heard_all(self, speech: Speech) -> None:
        if speech.order is None:
            raise OmniError(ErrorCode.STAGE_FAILED, "the request ended before it said what to say")
        speech.is_heard = True

    def can_speak(self, speech: Speech) -> bool:
        return speech.is_heard

    def input_tokens(self, speech: Speech) -> int:
        return speech.wording.tokens

    def speak(self, speech: Speech) -> Payload | None:
        if speech.is_done:
            return None
        heard = self._begun(speech) if speech.prompt is None else None
        state = self._module.model.read(self._next_rows(speech), speech.cache)
        scores = self._first_codes.scores(self._module.logits(state), speech.said, speech.sampling)
        first = speech.sampling.talker.of(scores, speech.generator)
        if first.item() == self._config.talker.codec_eos_token_id:
            speech.is_done = True
            return None
        speech.last_frame = self._frame(speech, state, first)
        speech.said = torch.cat((speech.said, first), dim=1)
        speech.is_done = speech.frames >= speech.sampling.max_frames or not self._has_room(speech)
        if heard is None:
            return {"codes": to_array(speech.last_frame.to(torch.int32))}
        codes = torch.cat((heard, speech.last_frame), dim=1)
        return {"codes": to_array(codes.to(torch.int32)), "lead_in": heard.shape[1]}

    def _begun(self, speech: Speech) -> torch.Tensor | None:
        """The codes that lead in, if there are any, of shape (groups, frames)."""
        timbre = self._timbre(speech)
        speech.prompt = self._prompt(speech, timbre)
        return timbre.codes

    def _next_rows(self, speech: Speech) -> torch.Tensor:
        assert speech.prompt is not None
        if speech.last_frame is None:
            return speech.prompt.rows
        own = self._module.frame_rows(speech.last_frame)
        return own + speech.prompt.beside(speech.frames - 1)

    def _frame(self, speech: Speech, state: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        """All codes of the frame that begins with the first, of shape (groups, 1)."""
        predictor = self._module.code_predictor
        cache = DynamicCache(config=predictor.config)
        codes, rows = [first], torch.cat((state[None], self._module.code_row(first[0], 0)))
        for group in range(1, predictor.config.num_code_groups):
            code = speech.sampling.predictor.of(predictor.logits(rows, cache, group), speech.generator)
            codes.append(code)
            rows = self._module.code_row(code[0], group)
        return torch.cat(codes)

    def _has_room(self, speech: Speech) -> bool:
        return bool(speech.cache.get_seq_length() < self._config.talker.max_position_embeddings)

    def _prompt(self, speech: Speech, timbre: Timbre) -> Prompt:
        """A voice of the checkpoint's, or one that was designed, has read all before it speaks."""
        assert speech.order is not None
        return self._prompts.prompt(speech.wording, timbre, speech.order.language, is_whole=self._task != BASE)

    def _timbre(self, speech: Speech) -> Timbre:
        assert speech.order is not None
        if (reference := speech.order.reference) is not None:
            assert self._cloner is not None, "only orders of a checkpoint that clones have a reference"
            return self._cloner.timbre(reference)
        if (voice := speech.order.voice) is not None:
            return Timbre(self._module.codec_rows((self._config.talker.speakers[voice],))[0])
        return Timbre()

    def _wording(self, order: Order) -> Wording:
        heard = order.reference.text if order.reference else None
        return Wording(
            speech=self._tokens(speech_text(order.text)),
            instructions=self._tokens(instruction_text(order.instructions)) if order.instructions else (),
            reference=self._tokens(reference_text(heard)) if heard else (),
        )

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text)["input_ids"]
        return ids


def load(plan: LoadPlan) -> Loading[Talker]:
    tame_transformers()
    yield "loading talker 1/1"
    config = read_config(Qwen3TTSConfig, plan)
    if config.talker.use_sliding_window:
        raise ModelLoadError(f"the talker of {plan.folder} sees a window only, which none does that was published")
    module = load_module(TalkerModule, config.talker, "talker", plan)
    tokenizer = Qwen2Tokenizer.from_pretrained(plan.folder, local_files_only=True)
    cloner = load_cloner(plan, config) if task_of(config) == BASE else None
    talker = Talker(module, config, tokenizer, checkpoint_defaults(plan.folder), cloner)
    yield f"loaded {weights.size_bytes(talker.modules) / 2**30:.3g} GiB for {task_of(config)}"
    return talker
