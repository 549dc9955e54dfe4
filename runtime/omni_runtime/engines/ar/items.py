"""Steps as the items that leave the stage."""

from functools import lru_cache
from typing import Any

from omni_contract.wire.payload import Payload, Value
from omni_runtime.engines.ar.step import Candidate, Chosen, Step


class TextItems:
    """The items of one request's text. `spelling` is of the model's tokenizer, if any; `top` candidates are told."""

    def __init__(self, spelling: "Spelling | None", top: int | None) -> None:
        self._spelling = spelling
        self._top = top

    def item(self, step: Step) -> dict[str, Value]:
        item: dict[str, Value] = {"text": step.text, "token_ids": list(step.token_ids)}
        if step.prompt_token_ids is not None:
            item["prompt_tokens"] = len(step.prompt_token_ids)
        if step.finish_reason is not None:
            item["finish_reason"] = step.finish_reason
        if step.stop_reason is not None:
            item["stop_reason"] = step.stop_reason
        if self._top is not None and self._spelling is not None:
            item["logprobs"] = [self._chosen(chosen, self._top) for chosen in step.logprobs]
        return item

    def _chosen(self, chosen: Chosen, top: int) -> Payload:
        candidates: list[Value] = [self._candidate(candidate) for candidate in chosen.top[:top]]
        return {**self._candidate(chosen.candidate), "top": candidates}

    def _candidate(self, candidate: Candidate) -> Payload:
        assert self._spelling is not None
        spelt = self._spelling.token_bytes(candidate.token_id)
        text = spelt.decode(errors="replace")
        return {"token": text, "token_id": candidate.token_id, "logprob": candidate.logprob, "bytes": list(spelt)}


class Spelling:
    """Tokens as bytes: a token may be a part of a character."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._is_byte_level = "ByteLevel" in str(
            getattr(tokenizer, "backend_tokenizer", None) and tokenizer.backend_tokenizer.decoder
        )
        self.token_bytes = lru_cache(maxsize=65_536)(self._token_bytes)

    def _token_bytes(self, token_id: int) -> bytes:
        token: str | None = self._tokenizer.convert_ids_to_tokens(token_id)
        if token is None:
            return b""
        if self._is_byte_level and all(character in BYTES for character in token):
            return bytes(BYTES[character] for character in token)
        return str(self._tokenizer.decode([token_id])).encode()


def _byte_alphabet() -> dict[str, int]:
    """The printable stand-ins that byte-level tokenizers write for bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}


BYTES = _byte_alphabet()
