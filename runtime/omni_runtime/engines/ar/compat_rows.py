"""Rows as a prompt that grows while vLLM decodes: its streamed input, in which a request keeps its place and its cache.

vLLM makes as many tokens of a part as the part says, then waits for the next one. It forgets the last token that it has
made, so that each further part begins with it; that token's embedding and the first row are the next step's input.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from vllm import SamplingParams
from vllm.engine.protocol import StreamingInput

from omni_contract.wire.payload import Array
from omni_runtime.engines.ar.rows_ahead import RowsAhead
from omni_runtime.engines.ar.step import FinishReason
from omni_runtime.engines.ar.takers import ROWS_KEY, SEED_KEY, STATES_KEY
from omni_runtime.families.protocol import PromptRows, RowKind


class RowFeed:
    """One request's rows on their way in, and what it knows of the tokens that come out."""

    def __init__(self, rows: RowsAhead, params: SamplingParams, states_key: int | None = None) -> None:
        self.finish_reason: FinishReason | None = None
        self._rows = rows
        self._params = params
        self._extra: dict[str, Any] = {SEED_KEY: secrets.randbits(62) if params.seed is None else params.seed}
        if states_key is not None:
            self._extra[STATES_KEY] = states_key
        self._limit = int(params.max_tokens or 0)
        self._asked_for = 0
        self._begin = 0
        """The position of the first token that is made."""
        self._positions: list[list[int]] | None = None
        self._tokens: list[int] = []
        self._changed = asyncio.Event()

    def params(self, count: int, rows: dict[str, Any] | None = None) -> SamplingParams:
        """The request's own, for a part that makes so many tokens. vLLM counts each part's anew."""
        params = self._params.clone()
        least = max(0, params.min_tokens - self._asked_for)
        params.max_tokens, params.min_tokens = count, min(count, least)
        params.extra_args = None if rows is None else {**self._extra, ROWS_KEY: rows}
        return params

    def made(self, token_id: int) -> None:
        self._tokens.append(token_id)
        if token_id in (self._params.stop_token_ids or ()):
            self.finish_reason = "stop"
        elif len(self._tokens) >= self._limit:
            self.finish_reason = "length"
        self._changed.set()

    async def inputs(self) -> AsyncGenerator[StreamingInput, None]:
        """For vLLM, which reads them in a task of its own. Rows that came while others were computed are one part."""
        begun = await self._rows.prompt()
        self._begin, self._positions = len(begun.token_ids), _positions(begun)
        position = self._begin
        kinds = begun.kinds or (RowKind.WORD,) * self._begin
        yield self._part(list(begun.token_ids), 1, self._given(begun.rows, 0, kinds))
        rows = begun.rows
        while (following := await self._rows.following()) is not None:
            rows, last = following, await self._last_token()
            rest = self._limit - self._asked_for
            count = rest if self._rows.is_over else min(rows.shape[0], rest)
            if count:
                yield self._part([last], count, self._given(rows, position))
                position += count
        if self._asked_for < self._limit:
            last = await self._last_token()
            yield self._part([last], self._limit - self._asked_for, self._given(_last(rows), position))
        # The session lives as long as its input does: whoever reads the tokens ends it.
        await asyncio.Event().wait()

    def _given(self, rows: Array, position: int, kinds: Sequence[RowKind] = ()) -> dict[str, Any]:
        return {
            "rows": bytes(rows.data),
            "dtype": rows.dtype,
            "width": rows.shape[1],
            "position": position,
            "kinds": bytes(kinds or (RowKind.ADDED,) * rows.shape[0]),
            "begin": self._begin,
            "positions": None if position else self._positions,
        }

    async def _last_token(self) -> int:
        """Once all that were asked for are there."""
        while len(self._tokens) < self._asked_for:
            self._changed.clear()
            await self._changed.wait()
        return self._tokens[-1]

    def _part(self, token_ids: list[int], count: int, rows: dict[str, Any]) -> StreamingInput:
        params = self.params(count, rows)
        self._asked_for += count
        return StreamingInput(prompt={"prompt_token_ids": token_ids}, sampling_params=params)


def _positions(begun: PromptRows) -> list[list[int]] | None:
    """Of each token in time, height and width."""
    if begun.positions is None:
        return None
    flat = begun.positions.data.cast("B").cast("i").tolist()
    return [flat[place : place + 3] for place in range(0, len(flat), 3)]


def _last(rows: Array) -> Array:
    row_bytes = rows.size_bytes // rows.shape[0]
    return Array(rows.dtype, (1, rows.shape[1]), rows.data[-row_bytes:])
