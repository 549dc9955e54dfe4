"""Answers that are made while they are sent begin once their first part is there."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

from fastapi import Request

from omni_runtime.frontend.disconnect import while_connected

Admitted = TypeVar("Admitted")
Part = TypeVar("Part")


@dataclass(frozen=True)
class Begun(Generic[Admitted, Part]):
    """`first` is the first of the `parts`; whoever answers with them closes `work` at the end, however that comes."""

    admitted: Admitted
    first: Part
    parts: AsyncGenerator[Part, None]
    work: AsyncExitStack


async def begun(
    request: Request,
    admitting: AbstractAsyncContextManager[Admitted],
    parts_of: Callable[[Admitted], AsyncGenerator[Part, None]],
) -> Begun[Admitted, Part]:
    """What was admitted, with its first part made, so that what fails before it still has its status."""
    async with AsyncExitStack() as stack:
        admitted = await while_connected(request, stack.enter_async_context(admitting))
        parts = await stack.enter_async_context(aclosing(parts_of(admitted)))
        first = await while_connected(request, _first(parts))
        return Begun(admitted, first, _joined(first, parts), stack.pop_all())


async def _first(parts: AsyncGenerator[Part, None]) -> Part:
    return await anext(parts)


async def _joined(first: Part, rest: AsyncGenerator[Part, None]) -> AsyncGenerator[Part, None]:
    yield first
    async for part in rest:
        yield part
