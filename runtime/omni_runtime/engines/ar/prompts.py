"""From a request's payload to a prompt: chat template, tokenizer, media. What is not tokens yet has a thread."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from transformers import AutoTokenizer

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload, Value, are_integers
from omni_runtime.engines.ar import messages
from omni_runtime.engines.ar.media import MediaData, media_of
from omni_runtime.engines.ar.messages import conversation_of, media_parts

PROBE = "omni-probe"
TOKENS = "prompt_token_ids"
PARAMS = (messages.PARAM, TOKENS, "prompt")
"""What a payload may have, one of them, as the request's field is called."""


@dataclass(frozen=True)
class Prompt:
    """`param` is the field of the request that it comes from. Either `token_ids` or, with media, `text` is set."""

    param: str
    token_ids: tuple[int, ...] = ()
    text: str | None = None
    media: MediaData = field(default_factory=dict)
    processor: Mapping[str, Value] = field(default_factory=dict)


class Prompts:
    """`vocabulary_size` and `max_length` are the model's; `with_metadata`: its videos need their frame rate."""

    def __init__(self, folder: Path, vocabulary_size: int, max_length: int, with_metadata: bool = False) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._template = self.tokenizer.chat_template or _template_of_processor(folder)
        self._vocabulary_size = vocabulary_size
        self._max_length = max_length
        self._with_metadata = with_metadata

    def prompt(self, payload: Payload) -> Prompt:
        """Raises OmniError if the payload has none, or one that does not fit."""
        match _param_of(payload):
            case messages.PARAM:
                return self._fitting(self._of_messages(payload))
            case "prompt_token_ids":
                return self._fitting(Prompt(TOKENS, self._checked(payload[TOKENS])))
            case "prompt":
                return self._fitting(self._of_text(payload))
        raise OmniError(ErrorCode.INVALID_REQUEST, f"the request has no prompt; give one of {', '.join(PARAMS)}")

    @staticmethod
    def are_tokens(payload: Payload) -> bool:
        """Whether its prompt takes no time worth a thread."""
        return _param_of(payload) == TOKENS

    @cached_property
    def _reads_parts(self) -> bool:
        """Whether the template takes a list of parts as content, as it must for media."""
        part = {"type": "text", "text": PROBE}
        try:
            rendered = self._render([{"role": "user", "content": [part]}], None)
        except (TemplateError, TypeError):
            return False
        return PROBE in rendered and str(part) not in rendered

    def _of_messages(self, payload: Payload) -> Prompt:
        if self._template is None:
            text = "this model has no chat template; send its prompt to /v1/completions"
            raise OmniError(ErrorCode.INVALID_REQUEST, text, messages.PARAM)
        conversation = conversation_of(payload[messages.PARAM], self._reads_parts)
        try:
            text = self._render(conversation.messages, payload.get("tools"))
        except TemplateError as error:
            raise OmniError(ErrorCode.INVALID_REQUEST, f"the chat template: {error}", messages.PARAM) from error
        if not conversation.media:
            # The template has written the special tokens already.
            return Prompt(messages.PARAM, self._tokens(text, add_special_tokens=False))
        media = media_of(conversation.media, self._with_metadata)
        return Prompt(messages.PARAM, text=text, media=media.data, processor={**media.processor, **_kwargs(payload)})

    def _of_text(self, payload: Payload) -> Prompt:
        """Whoever sends media beside a text has put the model's own placeholders into it."""
        text, parts = payload["prompt"], media_parts(payload.get("media"))
        if not parts or not isinstance(text, str):
            return Prompt("prompt", self._tokens(text))
        media = media_of(parts, self._with_metadata)
        return Prompt("prompt", text=text, media=media.data, processor={**media.processor, **_kwargs(payload)})

    def _render(self, conversation: Sequence[Mapping[str, Value]], tools: Value) -> str:
        rendered: str = self.tokenizer.apply_chat_template(
            list(conversation), tools=tools, chat_template=self._template, add_generation_prompt=True, tokenize=False
        )
        return rendered

    def _tokens(self, text: Value, **options: Any) -> tuple[int, ...]:
        if not isinstance(text, str):
            raise OmniError(
                ErrorCode.INVALID_REQUEST, f"the prompt must be a text, got {type(text).__name__}", "prompt"
            )
        return tuple(self.tokenizer(text, **options).input_ids)

    def _checked(self, ids: Value) -> tuple[int, ...]:
        """An id outside of the vocabulary would end the engine, and with it everybody else's requests."""
        most = self._vocabulary_size - 1
        if isinstance(ids, Sequence) and not isinstance(ids, str | bytes) and are_integers(ids, 0, most):
            return tuple(ids)
        text = f"token ids must be integers from 0 to {most}"
        raise OmniError(ErrorCode.INVALID_REQUEST, text, TOKENS)

    def _fitting(self, prompt: Prompt) -> Prompt:
        """Of a prompt with media, only vLLM knows the length."""
        length = len(prompt.token_ids)
        if prompt.text is None and not length:
            raise OmniError(ErrorCode.INVALID_REQUEST, "the prompt is empty", prompt.param)
        if length >= self._max_length:
            text = f"the prompt has {length} tokens; with its answer it may have {self._max_length} at most"
            raise OmniError(ErrorCode.INVALID_REQUEST, text, prompt.param)
        return prompt


def _param_of(payload: Payload) -> str | None:
    return next((param for param in PARAMS if param in payload), None)


def _kwargs(payload: Payload) -> Mapping[str, Value]:
    kwargs = payload.get("mm_processor_kwargs") or {}
    if not isinstance(kwargs, Mapping):
        raise OmniError(ErrorCode.INVALID_REQUEST, "mm_processor_kwargs must be a map", "mm_processor_kwargs")
    return kwargs


def _template_of_processor(folder: Path) -> str | None:
    """Older checkpoints of multimodal models keep it in a file that tokenizers do not read."""
    file = folder / "chat_template.json"
    return json.loads(file.read_text())["chat_template"] if file.is_file() else None
