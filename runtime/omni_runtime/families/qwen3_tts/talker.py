"""Qwen3-TTS's talker: a frame of codes of each of several speeches, as the qwen-tts package makes them one by one.

It reads the request itself. The package drops the last frame of a speech that ends by its limit; this does not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from transformers import DynamicCache, Qwen2Tokenizer

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload, Value
from omni_runtime.families.checkpoint_part import load_module, read_config
from omni_runtime.families.code_choice import Choice, Narrowing, drawn
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
from omni_runtime.families.qwen3_tts.sampling import checkpoint_defaults, first_codes, sampling
from omni_runtime.families.qwen3_tts.talker_module import TalkerModule
from omni_runtime.families.row_cache import RowCache, RowsCache, length
from omni_runtime.library_logs import tame_transformers
from omni_runtime.stepping import weights
from omni_runtime.stepping.dice import drawn_or_not
from omni_runtime.stepping.loading import LoadPlan, ModelLoadError
from omni_runtime.stepping.resident import Loading
from omni_runtime.stepping.tensors import to_array

SILENCE = Reference(to_array(torch.zeros(24_000)), 24_000, "a")
"""A second of it, for the test of encoders."""


@dataclass(eq=False)
class Speech:
    """What is known of one request."""

    choice: Choice
    """Of the first codes of its frames."""
    predicted: Narrowing
    """For their other codes."""
    max_frames: int
    cache: RowCache = ()
    order: Order | None = None
    wording: Wording = field(default_factory=lambda: Wording(()))
    prompt: Prompt | None = None
    heard: torch.Tensor | None = None
    """The codes that lead in, of shape (groups, frames), if there are any."""
    last_frame: torch.Tensor | None = None
    """Of shape (groups, 1)."""
    is_heard: bool = False
    is_done: bool = False

    @property
    def frames(self) -> int:
        return self.choice.count


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
        self._first_codes = first_codes(config.talker, module.device)

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
        choice = Choice(
            chosen.repetition_penalty,
            chosen.min_frames,
            chosen.talker,
            torch.Generator(device).manual_seed(chosen.seed),
            torch.zeros(self._config.talker.vocab_size, dtype=torch.bool, device=device),
        )
        return Speech(choice, chosen.predictor, chosen.max_frames)

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
        (item,) = self.speak_together([speech])
        return item

    def speak_together(self, speeches: Sequence[Speech]) -> list[Payload | None]:
        """One more frame of each; None of those that have ended or end now."""
        going = [speech for speech in speeches if not speech.is_done]
        if not going:
            return [None] * len(speeches)
        choices = [speech.choice for speech in going]
        with drawn_or_not([choice.dice for choice in choices]):
            states, caches = self._read(going)
            firsts = self._first_codes.choose(choices, self._module.logits(states))
            is_over = firsts == self._config.talker.codec_eos_token_id
            speaking = [speech for speech, over in zip(going, is_over.tolist(), strict=True) if not over]
            frames = self._frames(speaking, states[~is_over], firsts[~is_over]).T if speaking else ()
        for speech, cache, over in zip(going, caches, is_over.tolist(), strict=True):
            speech.cache, speech.is_done = cache, over
        said = {speech: self._say(speech, frame[:, None]) for speech, frame in zip(speaking, frames, strict=True)}
        return [said.get(speech) for speech in speeches]

    def _read(self, speeches: Sequence[Speech]) -> tuple[torch.Tensor, list[RowCache]]:
        """The talker's states, (speeches, hidden), and what is known of each then. One that has not begun is alone."""
        if speeches[0].cache:
            rows = self._step_rows(speeches)
        else:
            (speech,) = speeches
            rows = self._prompt(speech).rows[None]
        new, lengths = rows.shape[1], torch.tensor([length(speech.cache) for speech in speeches])
        cache = RowsCache([speech.cache for speech in speeches])
        mask = cache.mask(new, rows.dtype, rows.device) if speeches[0].cache else None
        positions = (lengths[:, None] + torch.arange(new)).to(rows.device)
        return self._module.model.read(rows, cache, positions, mask), cache.grown()

    def _step_rows(self, speeches: Sequence[Speech]) -> torch.Tensor:
        last = torch.cat([speech.last_frame for speech in speeches if speech.last_frame is not None], dim=1)
        beside = [speech.prompt.beside(speech.frames - 1) for speech in speeches if speech.prompt is not None]
        return (self._module.frame_rows(last) + torch.stack(beside))[:, None]

    def _frames(self, speeches: Sequence[Speech], states: torch.Tensor, firsts: torch.Tensor) -> torch.Tensor:
        """All codes of the frames that begin with the first ones, of shape (groups, speeches)."""
        predictor = self._module.code_predictor
        cache = DynamicCache(config=predictor.config)
        narrowings, dice = [speech.predicted for speech in speeches], [speech.choice.dice for speech in speeches]
        codes, rows = [firsts], torch.stack((states, self._module.code_row(firsts, 0)), dim=1)
        for group in range(1, predictor.config.num_code_groups):
            logits = predictor.logits(rows, cache, group)
            codes.append(drawn(narrowings, dice, logits))
            rows = self._module.code_row(codes[-1], group)[:, None]
        return torch.stack(codes)

    def _say(self, speech: Speech, frame: torch.Tensor) -> Payload:
        heard = speech.heard if speech.last_frame is None else None
        speech.last_frame = frame
        speech.choice.say(int(frame[0]))
        speech.is_done = speech.frames >= speech.max_frames or not self._has_room(speech)
        if heard is None:
            return {"codes": to_array(frame.to(torch.int32))}
        codes = torch.cat((heard, frame), dim=1)
        return {"codes": to_array(codes.to(torch.int32)), "lead_in": heard.shape[1]}

    def _has_room(self, speech: Speech) -> bool:
        return bool(length(speech.cache) < self._config.talker.max_position_embeddings)

    def _prompt(self, speech: Speech) -> Prompt:
        """A voice of the checkpoint's, or one that was designed, has read all before it speaks."""
        assert speech.order is not None
        timbre = self._timbre(speech)
        is_whole = self._task != BASE
        speech.heard = timbre.codes
        speech.prompt = self._prompts.prompt(speech.wording, timbre, speech.order.language, is_whole)
        return speech.prompt

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
