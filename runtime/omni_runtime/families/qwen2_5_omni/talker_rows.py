"""The talker on vLLM: its input, made of what the thinker hands on as it comes, and the codes that leave it.

It begins with the prompt's rows, a row that says who speaks, and the row of the answer's first token. Each further row
comes with a step; when the thinker has ended, a row says so, and one more holds from there on.
"""

from collections.abc import Mapping
from contextlib import aclosing

import torch
from transformers import Qwen2_5OmniConfig

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload, Value
from omni_runtime.engines.items import items_as_they_come
from omni_runtime.engines.protocol import StageRequest
from omni_runtime.families.checkpoint_part import read_config, table_rows
from omni_runtime.families.protocol import NextRows, PromptRows, RowSource
from omni_runtime.families.qwen2_5_omni import talker_input
from omni_runtime.families.qwen2_5_omni.voices import Voice, read_voices, voice_of
from omni_runtime.families.reply_rows import ReplyRows
from omni_runtime.stepping.loading import LoadPlan
from omni_runtime.stepping.tensors import to_array, to_tensor
from omni_runtime.stepping.weights import HOST

THINKER_TABLE = "thinker.model.embed_tokens.weight"
TALKER_TABLE = "talker.model.embed_tokens.weight"
NO_MEDIA = -1
"""Stands for any word of an answer."""


class TalkerRows:
    def __init__(self, plan: LoadPlan) -> None:
        config = read_config(Qwen2_5OmniConfig, plan)
        self._config = config.talker_config
        self._media = talker_input.media_ids(config.thinker_config)
        self._unplaced = (config.thinker_config.image_token_index, config.thinker_config.video_token_index)
        self._voices = read_voices(plan, config.token2wav_config.dit_config)
        width, codec = config.talker_config.embedding_size, talker_input.prompt_ids(self._config, 0)
        self._codec = _floats(table_rows(plan, TALKER_TABLE, codec, width))
        tokens = {row for voice in self._voices.values() for row in self._row_ids(voice)}
        self._thinker = _floats(table_rows(plan, THINKER_TABLE, sorted(tokens), width))

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        return talker_input.stop_ids(self._config)

    def select(self, item: Payload) -> Payload:
        tokens = item["token_ids"]
        assert isinstance(tokens, list)
        return {"codes": to_array(talker_input.codes(tokens, self._config))}

    async def rows(self, request: StageRequest, parameters: Mapping[str, Value]) -> RowSource:
        voice = parameters.get("voice")
        if voice is not None and not isinstance(voice, str):
            raise OmniError(ErrorCode.INVALID_REQUEST, f'parameter "voice" is {voice!r}; it must be a name', "voice")
        begin, over, padding = (self._thinker[row] for row in self._row_ids(voice_of(self._voices, voice)))
        thinker = talker_input.ThinkerRows(begin, over, padding)
        prompt, waiting, has_begun = list[int](), begin.new_empty((0, len(begin))), False
        async with aclosing(items_as_they_come(request)) as items:
            async for _, item in items:
                prompt = prompt or self._prompt(item)
                waiting = torch.cat([waiting, self._read(item, prompt if not has_begun else [], len(waiting))])
                if not has_begun and prompt and len(waiting) > len(prompt):
                    has_begun = True
                    yield self._beginning(waiting[: len(prompt) + 1], thinker)
                    waiting = waiting[len(prompt) + 1 :]
                if has_begun and len(waiting):
                    yield NextRows(to_array(waiting))
                    waiting = waiting[:0]
        if not has_begun:
            # The answer is its end alone, whose row no step has computed.
            yield self._beginning(torch.cat([waiting, over[None]]), thinker)
        yield NextRows(to_array(torch.stack([over, padding])))

    def _row_ids(self, voice: Voice) -> tuple[int, int, int]:
        return talker_input.row_ids(self._config, voice.token_id)

    def _prompt(self, item: Payload) -> list[int]:
        prompt = item.get("prompt_token_ids", [])
        if not isinstance(prompt, list):
            raise OmniError(ErrorCode.STAGE_FAILED, "what came from the thinker has no prompt")
        if any(token_id in self._unplaced for token_id in prompt):
            text = "this talker cannot place pictures and videos yet; ask for text alone, or about text and sound"
            raise OmniError(ErrorCode.INVALID_REQUEST, text, "modalities")
        return prompt

    def _read(self, item: Payload, prompt: list[int], known: int) -> torch.Tensor:
        """A row for each token that the thinker has read since the item before."""
        hidden = item.get("hidden")
        layers = [
            hidden.get(str(layer)) if isinstance(hidden, Mapping) else None for layer in talker_input.THINKER_LAYERS
        ]
        arrays = [layer for layer in layers if isinstance(layer, Array)]
        if not arrays and hidden == {}:
            return next(iter(self._thinker.values())).new_empty((0, self._config.embedding_size))
        if len(arrays) < len(layers):
            text = "the thinker sends no states of its layers 0 and -1; set ar.hiddenLayers of its stage"
            raise OmniError(ErrorCode.STAGE_FAILED, text)
        embeddings, states = (to_tensor(array, HOST).float() for array in arrays)
        read = prompt[known : known + len(states)]
        return talker_input.select(read + [NO_MEDIA] * (len(states) - len(read)), embeddings, states, self._media)

    def _beginning(self, rows: torch.Tensor, thinker: talker_input.ThinkerRows) -> PromptRows:
        """`rows` are the prompt's and that of the answer's first token."""
        padding, start = (self._codec[code] for code in talker_input.prompt_ids(self._config, 0))
        reply = ReplyRows(thinker.over, thinker.padding)
        reply.add(rows[-1:])
        made = talker_input.prompt_rows(rows[:-1], reply, thinker, talker_input.CodecRows(padding, start))
        return PromptRows(tuple(talker_input.prompt_ids(self._config, len(rows) - 1)), to_array(made))


def _floats(rows: Mapping[int, torch.Tensor]) -> dict[int, torch.Tensor]:
    return {row: values.float() for row, values in rows.items()}
