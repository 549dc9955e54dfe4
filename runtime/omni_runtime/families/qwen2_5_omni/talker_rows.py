"""The talker on vLLM: its input, made of what the thinker hands on as it comes, and the codes that leave it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from transformers import Qwen2_5OmniConfig, Qwen2_5OmniTalkerConfig

from omni_contract.wire.payload import Payload, Value
from omni_runtime.engines.protocol import StageRequest
from omni_runtime.families.checkpoint_part import read_config, table_rows
from omni_runtime.families.protocol import PromptRows, RowSource
from omni_runtime.families.qwen2_5_omni import talker_input
from omni_runtime.families.qwen2_5_omni.voices import Voice, read_voices, voice_of
from omni_runtime.families.reply_rows import ReplyRows
from omni_runtime.families.speech_rows import HeardPrompt, speech_rows, voice_name
from omni_runtime.stepping.loading import LoadPlan
from omni_runtime.stepping.tensors import to_array

THINKER_TABLE = "thinker.model.embed_tokens.weight"
TALKER_TABLE = "talker.model.embed_tokens.weight"


class TalkerRows:
    def __init__(self, plan: LoadPlan) -> None:
        config = read_config(Qwen2_5OmniConfig, plan)
        self._config = config.talker_config
        self._media = talker_input.media_ids(config.thinker_config)
        self._voices = read_voices(plan, config.token2wav_config.dit_config)
        width, codec = config.talker_config.embedding_size, talker_input.prompt_ids(self._config, 0)
        codec_rows = _floats(table_rows(plan, TALKER_TABLE, codec, width))
        self._codec = talker_input.CodecRows(*(codec_rows[code] for code in codec))
        tokens = {row for voice in self._voices.values() for row in self._row_ids(voice)}
        self._thinker = _floats(table_rows(plan, THINKER_TABLE, sorted(tokens), width))

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        return talker_input.stop_ids(self._config)

    def select(self, item: Payload) -> Payload:
        tokens = item["token_ids"]
        assert isinstance(tokens, list)
        return {"codes": to_array(talker_input.codes(tokens, self._config))}

    def rows(self, request: StageRequest, parameters: Mapping[str, Value]) -> RowSource:
        voice = voice_of(self._voices, voice_name(parameters))
        thinker = talker_input.ThinkerRows(*(self._thinker[row] for row in self._row_ids(voice)))
        return speech_rows(request, Speaker(self._config, self._media, thinker, self._codec))

    def _row_ids(self, voice: Voice) -> tuple[int, int, int]:
        return talker_input.row_ids(self._config, voice.token_id)


@dataclass(frozen=True)
class Speaker:
    config: Qwen2_5OmniTalkerConfig
    media: tuple[int, ...]
    thinker: talker_input.ThinkerRows
    codec: talker_input.CodecRows
    layers = talker_input.THINKER_LAYERS

    @property
    def over(self) -> torch.Tensor:
        return self.thinker.over

    @property
    def padding(self) -> torch.Tensor:
        return self.thinker.padding

    def read(self, token_ids: Sequence[int], first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return talker_input.select(token_ids, first, second, self.media)

    def beginning(self, prompt: HeardPrompt, rows: torch.Tensor) -> PromptRows:
        reply = ReplyRows(self.over, self.padding)
        reply.add(rows[-1:])
        made = talker_input.prompt_rows(rows[:-1], reply, self.thinker, self.codec)
        positions = None if prompt.positions is None else to_array(talker_input.positions(prompt.positions))
        return PromptRows(tuple(talker_input.prompt_ids(self.config, len(prompt))), to_array(made), positions=positions)


def _floats(rows: Mapping[int, torch.Tensor]) -> dict[int, torch.Tensor]:
    return {row: values.float() for row, values in rows.items()}
