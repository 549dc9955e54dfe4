"""Rows that come while nobody takes them."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array
from omni_runtime.engines.ar.rows_ahead import RowsAhead
from omni_runtime.families.protocol import NextRows, PromptRows


def rows(*values: int) -> Array:
    return Array("uint8", (len(values), 1), memoryview(bytes(values)))


async def source(*pieces: PromptRows | NextRows | Exception, closed: list[bool] | None = None) -> AsyncGenerator:
    try:
        for piece in pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece
    finally:
        if closed is not None:
            closed.append(True)


PROMPT = PromptRows((7,), rows(0))


async def test_what_came_meanwhile_is_one_piece_and_its_last_one_is_known():
    async with RowsAhead(source(PROMPT, NextRows(rows(1)), NextRows(rows(2, 3)))) as ahead:
        assert (await ahead.prompt()).token_ids == (7,)
        for _ in range(20):
            await asyncio.sleep(0)
        following = await ahead.following()
        assert following is not None and (following.shape, bytes(following.data)) == ((3, 1), b"\x01\x02\x03")
        assert ahead.is_over
        assert await ahead.following() is None


async def test_what_broke_off_is_told_after_the_rows_before_it():
    error = OmniError(ErrorCode.TRANSFER_FAILED, "the thinker is gone")
    async with RowsAhead(source(PROMPT, NextRows(rows(1)), error)) as ahead:
        await ahead.prompt()
        following = await ahead.following()
        assert following is not None and not ahead.is_over
        with pytest.raises(OmniError, match="the thinker is gone"):
            await ahead.following()


async def test_no_more_is_read_than_there_is_room_for():
    closed = list[bool]()
    async with RowsAhead(source(PROMPT, *[NextRows(rows(n)) for n in range(9)], closed=closed), most=2) as ahead:
        await ahead.prompt()
        for _ in range(20):
            await asyncio.sleep(0)
        following = await ahead.following()
        assert following is not None and following.shape[0] == 2
    assert closed == [True]


async def test_an_input_begins_with_a_prompt():
    async with RowsAhead(source(NextRows(rows(1)))) as ahead:
        with pytest.raises(OmniError, match="begins without a prompt"):
            await ahead.prompt()
