"""The talker on vLLM: its input, made of what the thinker hands on as it comes, and the frames that leave it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from transformers import Qwen3OmniMoeConfig

from omni_contract.wire.payload import Array, Payload, Value
from omni_runtime.engines.protocol import StageRequest
from omni_runtime.families.checkpoint_part import read_config, table_rows
from omni_runtime.families.protocol import PromptRows, RowKind, RowSource
from omni_runtime.families.qwen3_omni import talker_input
from omni_runtime.families.speech_rows import HeardPrompt, speech_rows, voice_name
from omni_runtime.stepping.loading import LoadPlan
from omni_runtime.stepping.tensors import to_array, to_tensor
from omni_runtime.stepping.weights import HOST

THINKER_TABLE = "thinker.model.embed_tokens.weight"


class TalkerRows:
    def __init__(self, plan: LoadPlan) -> None:
        self._config = read_config(Qwen3OmniMoeConfig, plan)
        ids = talker_input.row_ids(self._config)
        rows = table_rows(plan, THINKER_TABLE, sorted(set(ids)), self._config.talker_config.thinker_hidden_size)
        self._rows = talker_input.SpeechRows(*(rows[token_id].float() for token_id in ids))

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        return (self._config.talker_config.codec_eos_token_id,)

    def select(self, item: Payload) -> Payload:
        frames = item["frames"]
        assert isinstance(frames, Array)
        return {"codes": to_array(to_tensor(frames, HOST).T)}

    def rows(self, request: StageRequest, parameters: Mapping[str, Value]) -> RowSource:
        voice = talker_input.speaker_of(self._config.talker_config, voice_name(parameters))
        return speech_rows(request, Speaker(self._config, voice, self._rows))


@dataclass(frozen=True)
class Speaker:
    """`speech` are rows of the thinker's table as they are: the model projects all rows."""

    config: Qwen3OmniMoeConfig
    voice: int
    speech: talker_input.SpeechRows

    @property
    def layers(self) -> tuple[int, int]:
        return talker_input.thinker_layers(self.config.talker_config)

    @property
    def over(self) -> torch.Tensor:
        return self.speech.over

    @property
    def padding(self) -> torch.Tensor:
        return self.speech.padding

    def read(self, token_ids: Sequence[int], first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        thinker = self.config.thinker_config
        return talker_input.select(token_ids, first, second, talker_input.media_ids(thinker))

    def beginning(self, prompt: HeardPrompt, rows: torch.Tensor) -> PromptRows:
        """The user's turns, the head of the answer's, then padding and the first word over the talker's own tokens."""
        heard = talker_input.heard_positions(prompt.token_ids, self.config)
        media = talker_input.media_ids(self.config.thinker_config)
        kinds = [RowKind.MEDIUM if prompt.token_ids[position] in media else RowKind.WORD for position in heard]
        own = talker_input.codec_ids(self.config.talker_config, self.voice)
        padding = self.padding.expand(len(own) - 2, -1)
        made = torch.cat((rows[heard], padding, self.speech.begin[None], rows[-1:]))
        silent = (self.config.talker_config.codec_pad_id,) * len(heard)
        positions = None
        if prompt.positions is not None:
            positions = to_array(talker_input.positions(prompt.positions, heard, len(own)))
        return PromptRows((*silent, *own), to_array(made), (*kinds, *(RowKind.ADDED,) * len(own)), positions)
