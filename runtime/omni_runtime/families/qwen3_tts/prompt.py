"""What the talker reads before it speaks, and what it adds to its own codes while it does, as the package builds it.

Text and codes are read in pairs, a row of each added up. Where there is no text, padding stands in for it, and so does
a code for padding where there is no code.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from omni_runtime.families.qwen3_tts.configuration import Qwen3TTSConfig
from omni_runtime.families.qwen3_tts.talker_module import TalkerModule

ROLE_TOKENS = 3
"""The beginning of a turn: its start, whose it is, a new line."""
END_TOKENS = 5
"""The end of a text: its end, a new line, and the beginning of a turn that nobody takes."""
REFERENCE_END_TOKENS = 2


@dataclass(frozen=True)
class Wording:
    """A request in tokens. `speech` is the text in its turn, `reference` what is said in the cloned voice's sample."""

    speech: Sequence[int]
    instructions: Sequence[int] = ()
    reference: Sequence[int] = ()

    @property
    def tokens(self) -> int:
        return len(self.speech) + len(self.instructions) + len(self.reference)


@dataclass(frozen=True)
class Timbre:
    """Who speaks: nobody in particular, or a row of the talker's width; `codes`, (groups, frames), if it was heard."""

    row: torch.Tensor | None = None
    codes: torch.Tensor | None = None


@dataclass(frozen=True)
class Prompt:
    """Rows of shape (rows, width). `trailing` is added to the talker's own codes step by step, and then `padding`."""

    rows: torch.Tensor
    trailing: torch.Tensor
    padding: torch.Tensor

    def beside(self, step: int) -> torch.Tensor:
        """What goes with the codes of a step, counted from 0."""
        return self.trailing[step] if step < len(self.trailing) else self.padding[0]


def speech_text(text: str) -> str:
    return f"<|im_start|>assistant\n{text}<|im_end|>\n<|im_start|>assistant\n"


def reference_text(text: str) -> str:
    return f"<|im_start|>assistant\n{text}<|im_end|>\n"


def instruction_text(text: str) -> str:
    return f"<|im_start|>user\n{text}<|im_end|>\n"


class PromptBuilder:
    def __init__(self, module: TalkerModule, config: Qwen3TTSConfig) -> None:
        self._module = module
        self._config = config.talker
        self._marks = (config.tts_bos_token_id, config.tts_eos_token_id, config.tts_pad_token_id)

    def prompt(self, wording: Wording, timbre: Timbre, language: str | None, is_whole: bool) -> Prompt:
        """With `is_whole` the talker reads all the text before it speaks, else word by word while it speaks."""
        begin, over, padding = self._module.text_rows(self._marks).split(1)
        tags = self._tags(timbre, language)
        role = self._module.text_rows(wording.speech[:ROLE_TOKENS])
        texts = torch.cat((padding.expand(len(tags) - 2, -1), begin))
        head = [*self._instructions(wording), role, texts + tags[:-1]]
        text = torch.cat((self._text(wording), over))
        rows, trailing = self._spoken(text, self._codes(timbre), padding, is_whole)
        return Prompt(torch.cat((*head, rows)), trailing, padding)

    def _instructions(self, wording: Wording) -> list[torch.Tensor]:
        return [self._module.text_rows(wording.instructions)] if wording.instructions else []

    def _tags(self, timbre: Timbre, language: str | None) -> torch.Tensor:
        """The talker's own tokens: the language, who speaks, padding and the beginning of the speech."""
        config = self._config
        if language is None:
            ids = [config.codec_nothink_id, config.codec_think_bos_id, config.codec_think_eos_id]
        else:
            tag = (config.codec_language_id or {})[language]
            ids = [config.codec_think_id, config.codec_think_bos_id, tag, config.codec_think_eos_id]
        voice = [] if timbre.row is None else [timbre.row[None].to(self._module.dtype)]
        padding = self._module.codec_rows((config.codec_pad_id,))
        return torch.cat((self._module.codec_rows(ids), *voice, padding, self._begin()))

    def _begin(self) -> torch.Tensor:
        return self._module.codec_rows((self._config.codec_bos_id,))

    def _text(self, wording: Wording) -> torch.Tensor:
        heard = wording.reference[ROLE_TOKENS:-REFERENCE_END_TOKENS]
        return self._module.text_rows([*heard, *wording.speech[ROLE_TOKENS:-END_TOKENS]])

    def _codes(self, timbre: Timbre) -> torch.Tensor:
        """What the talker takes for its own speech so far: its beginning, and the reference behind it."""
        heard = [] if timbre.codes is None else [self._module.frame_rows(timbre.codes)]
        return torch.cat((self._begin(), *heard))

    def _spoken(
        self, text: torch.Tensor, codes: torch.Tensor, padding: torch.Tensor, is_whole: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of text and codes, and the text that is left for later steps."""
        if is_whole:
            silent = self._module.codec_rows((self._config.codec_pad_id,))
            return torch.cat((text + silent, codes + padding)), padding
        missing = max(0, len(codes) - len(text))
        rows = torch.cat((text, padding.expand(missing, -1)))
        return rows[: len(codes)] + codes, rows[len(codes) :]
