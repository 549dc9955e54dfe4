"""Qwen2.5-Omni's talker on transformers' own layers: a code of each of several speeches, as its `generate` makes it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from transformers import Qwen2_5OmniConfig, Qwen2_5OmniTalkerForConditionalGeneration

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload, Value
from omni_runtime.engines.ar.sampling import Sampling, sampling_of
from omni_runtime.families.checkpoint_part import load_module, read_config, table_rows
from omni_runtime.families.code_choice import Choice, Chooser, Narrowing
from omni_runtime.families.qwen2_5_omni import talker_input
from omni_runtime.families.qwen2_5_omni.voices import Voice, read_voices, voice_of
from omni_runtime.families.reply_rows import ReplyRows
from omni_runtime.families.row_cache import RowCache, RowsCache, length
from omni_runtime.library_logs import tame_transformers
from omni_runtime.stepping import weights
from omni_runtime.stepping.dice import drawn_or_not
from omni_runtime.stepping.loading import LoadPlan
from omni_runtime.stepping.resident import Loading
from omni_runtime.stepping.tensors import to_array, to_tensor

THINKER_TABLE = "thinker.model.embed_tokens.weight"
NO_MEDIA = -1
"""Stands for any word of an answer."""
MAX_FRAMES = 2048
"""Unless a request or the stage says otherwise."""


@dataclass
class Speech:
    """What is known of one request. `rows` are of all that the thinker has read; `codes` are all that was said."""

    choice: Choice
    max_frames: int
    thinker: talker_input.ThinkerRows
    reply: ReplyRows
    rows: torch.Tensor
    prompt_ids: list[int] = field(default_factory=list)
    positions: torch.Tensor | None = None
    """Of the prompt in time, height and width, if those are not its tokens counted."""
    words: int = 0
    words_said: int = 0
    """To the reply: a word is, once the next one is there."""
    cache: RowCache = ()
    codes: list[int] = field(default_factory=list)
    is_done: bool = False


class Talker:
    """`thinker_rows` are those of the thinker's embedding table that it needs, by token."""

    def __init__(
        self,
        module: Qwen2_5OmniTalkerForConditionalGeneration,
        config: Qwen2_5OmniConfig,
        voices: Mapping[str, Voice],
        thinker_rows: Mapping[int, torch.Tensor],
    ) -> None:
        self._module = module
        self._config = config.talker_config
        self._media = talker_input.media_ids(config.thinker_config)
        self._voices = voices
        self._thinker_rows = thinker_rows
        never, ends = (ids(self._config) for ids in (talker_input.suppressed_ids, talker_input.stop_ids))
        self._chooser = Chooser(*(torch.tensor(ids, device=module.device) for ids in (never, ends)))

    @property
    def modules(self) -> list[torch.nn.Module]:
        return [self._module]

    def test_turns(self) -> Iterator[object]:
        speech = self.begin({"max_tokens": 2, "temperature": 0})
        row = to_array(torch.zeros((1, self._config.embedding_size)))
        self.hear(speech, {"prompt_token_ids": [0], "token_ids": [0], "hidden": {"0": row, "-1": row}})
        self.heard_all(speech)
        while (item := self.speak(speech)) is not None:
            yield item

    def begin(self, parameters: Mapping[str, Value]) -> Speech:
        voice = parameters.get("voice")
        if voice is not None and not isinstance(voice, str):
            raise OmniError(ErrorCode.INVALID_REQUEST, f'parameter "voice" is {voice!r}; it must be a name', "voice")
        ids = talker_input.row_ids(self._config, voice_of(self._voices, voice).token_id)
        begin, over, padding = (self._thinker_rows[token_id] for token_id in ids)
        sampling = sampling_of(parameters)
        nothing = begin.new_empty((0, len(begin)))
        thinker = talker_input.ThinkerRows(begin, over, padding)
        max_frames = int(_number(sampling, "max_tokens", MAX_FRAMES))
        return Speech(self._choice(sampling), max_frames, thinker, ReplyRows(over, padding), nothing)

    def hear(self, speech: Speech, item: Payload) -> None:
        """States may come before the words that they are of; those of the last word, if any come, nobody says."""
        if prompt := _ids(item, "prompt_token_ids"):
            speech.prompt_ids = prompt
            located = item.get("prompt_positions")
            if isinstance(located, Array):
                speech.positions = talker_input.positions(to_tensor(located, self._module.device))
        speech.words += len(_ids(item, "token_ids"))
        speech.rows = torch.cat((speech.rows, self._rows(speech, item)))
        first = len(speech.prompt_ids)
        speech.reply.add(speech.rows[first + speech.words_said : first + max(0, speech.words - 1)])
        speech.words_said = max(0, min(len(speech.rows) - first, speech.words - 1))

    def heard_all(self, speech: Speech) -> None:
        if not speech.prompt_ids or len(speech.rows) < len(speech.prompt_ids):
            raise OmniError(ErrorCode.STAGE_FAILED, "the thinker ended before it had read its prompt")
        speech.reply.end()

    def can_speak(self, speech: Speech) -> bool:
        return speech.is_done or speech.reply.has(len(speech.codes))

    def input_tokens(self, speech: Speech) -> int:
        """The thinker has counted them."""
        return 0

    def speak(self, speech: Speech) -> Payload | None:
        (item,) = self.speak_together([speech])
        return item

    def speak_together(self, speeches: Sequence[Speech]) -> list[Payload | None]:
        """One more code of each; None one step after its last, as the token that ends a speech is none."""
        ended = [speech.is_done for speech in speeches]
        going = [speech for speech in speeches if not speech.is_done]
        said = iter(self._say_next(going) if going else [])
        return [None if has_ended else next(said) for has_ended in ended]

    def _say_next(self, speeches: Sequence[Speech]) -> list[Payload | None]:
        choices = [speech.choice for speech in speeches]
        with drawn_or_not([choice.dice for choice in choices]):
            logits, caches = self._logits(speeches)
            chosen: list[int] = self._chooser.choose(choices, logits).tolist()
        return [self._say(*each) for each in zip(speeches, chosen, caches, strict=True)]

    def _rows(self, speech: Speech, item: Payload) -> torch.Tensor:
        """Of what the thinker has read since the item before."""
        hidden = item.get("hidden")
        if isinstance(hidden, Mapping) and not hidden:
            return speech.rows[:0]
        told = hidden if isinstance(hidden, Mapping) else {}
        layers = [told.get(str(layer)) for layer in talker_input.THINKER_LAYERS]
        arrays = [layer for layer in layers if isinstance(layer, Array)]
        if len(arrays) != len(talker_input.THINKER_LAYERS):
            wanted = " and ".join(map(str, talker_input.THINKER_LAYERS))
            text = f"the thinker sends no states of its layers {wanted}; set ar.hiddenLayers of its stage"
            raise OmniError(ErrorCode.STAGE_FAILED, text)
        embeddings, states = (to_tensor(array, self._module.device).to(self._module.dtype) for array in arrays)
        read = speech.prompt_ids[len(speech.rows) : len(speech.rows) + len(states)]
        answered = [NO_MEDIA] * (len(states) - len(read))
        return talker_input.select([*read, *answered], embeddings, states, self._media)

    def _say(self, speech: Speech, code: int, cache: RowCache) -> Payload | None:
        is_over = code in talker_input.stop_ids(self._config)
        speech.codes.append(code)
        speech.choice.say(code)
        speech.cache = cache
        speech.is_done = is_over or len(speech.codes) == speech.max_frames
        return None if is_over else {"codes": to_array(torch.tensor([[code]], dtype=torch.int32))}

    def _logits(self, speeches: Sequence[Speech]) -> tuple[torch.Tensor, list[RowCache]]:
        """Of each one's next code, and what is known of it then. One that has not begun is alone."""
        if speeches[0].cache:
            rows = self._step_rows(speeches)[:, None]
        else:
            (speech,) = speeches
            rows = self._prompt_rows(speech)[None]
        cache, new = RowsCache([speech.cache for speech in speeches]), rows.shape[1]
        hidden = self._module.thinker_to_talker_proj(rows)
        made = self._module.model(
            inputs_embeds=hidden,
            position_ids=torch.stack([_positions(speech, new) for speech in speeches], dim=1).to(hidden.device),
            attention_mask=dict.fromkeys(self._config.layer_types, cache.mask(new, hidden.dtype, hidden.device)),
            past_key_values=cache,
            use_cache=True,
        )
        logits: torch.Tensor = self._module.codec_head(made.last_hidden_state[:, -1]).float()
        return logits, cache.grown()

    def _step_rows(self, speeches: Sequence[Speech]) -> torch.Tensor:
        codes = torch.tensor([speech.codes[-1] for speech in speeches], device=self._module.device)
        own = self._module.get_input_embeddings()(codes)
        steps = [(row, speech.reply, len(speech.codes) - 1) for row, speech in zip(own, speeches, strict=True)]
        return torch.stack([talker_input.step_row(*step) for step in steps])

    def _prompt_rows(self, speech: Speech) -> torch.Tensor:
        table = self._module.get_input_embeddings().weight
        config = self._config
        codec = talker_input.CodecRows(table[config.tts_codec_pad_token_id], table[config.tts_codec_start_token_id])
        return talker_input.prompt_rows(speech.rows[: len(speech.prompt_ids)], speech.reply, speech.thinker, codec)

    def _choice(self, sampling: Sampling) -> Choice:
        seed = sampling.get("seed", 0)
        assert isinstance(seed, int)
        has_come = torch.zeros(self._module.codec_head.out_features, dtype=torch.bool, device=self._module.device)
        has_come[talker_input.prompt_ids(self._config, 1)] = True
        temperature, top_k, top_p = (
            _number(sampling, name, default) for name, default in (("temperature", 0.9), ("top_k", 40), ("top_p", 0.8))
        )
        return Choice(
            _number(sampling, "repetition_penalty", 1.05),
            int(_number(sampling, "min_tokens", 0)),
            Narrowing(temperature, int(top_k), top_p),
            torch.Generator(self._module.device).manual_seed(seed),
            has_come,
        )


def _number(sampling: Sampling, name: str, default: float) -> float:
    value = sampling.get(name, default)
    assert isinstance(value, int | float)
    return value


def _positions(speech: Speech, new: int) -> torch.Tensor:
    """Of the next rows, of shape (3, new). What follows the prompt follows the furthest of it."""
    first, prompt = length(speech.cache), speech.positions
    if prompt is not None and not first:
        return prompt.T
    ahead = 0 if prompt is None else int(prompt.max()) + 1 - len(prompt)
    return torch.arange(first + ahead, first + ahead + new).expand(3, -1)


def _ids(item: Payload, name: str) -> list[int]:
    ids = item.get(name, [])
    if not isinstance(ids, Sequence) or not all(isinstance(token_id, int) for token_id in ids):
        raise OmniError(ErrorCode.STAGE_FAILED, f'the thinker sent {type(ids).__name__} as "{name}", not token ids')
    return [token_id for token_id in ids if isinstance(token_id, int)]


def load(plan: LoadPlan) -> Loading[Talker]:
    tame_transformers()
    yield "loading talker 1/1"
    config = read_config(Qwen2_5OmniConfig, plan)
    module = load_module(Qwen2_5OmniTalkerForConditionalGeneration, config.talker_config, "talker", plan)
    voices = read_voices(plan, config.token2wav_config.dit_config)
    tokens = {row for voice in voices.values() for row in talker_input.row_ids(config.talker_config, voice.token_id)}
    rows = table_rows(plan, THINKER_TABLE, sorted(tokens), config.talker_config.embedding_size)
    yield f"loaded {weights.size_bytes([module]) / 2**30:.3g} GiB and the voices {', '.join(voices)}"
    return Talker(module, config, voices, {token: row.to(module.device, module.dtype) for token, row in rows.items()})
