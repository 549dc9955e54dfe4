"""Whatever the settings, every item arrives once and in order, and chunks are as large as was said."""

from hypothesis import given
from hypothesis import strategies as st

from omni_contract.api.v1alpha1 import StreamingSpec
from omni_contract.wire.chunk import Chunk
from omni_contract.wire.payload import Payload
from omni_runtime.worker.chunker import Chunker


@st.composite
def streaming(draw: st.DrawFn) -> StreamingSpec:
    frames = draw(st.integers(1, 12))
    return StreamingSpec(
        chunk_frames=frames,
        initial_chunk_frames=draw(st.none() | st.integers(1, frames)),
        left_context_frames=draw(st.integers(0, 15)),
    )


def items(count: int) -> list[Payload]:
    return [{"item": number} for number in range(count)]


def cut(settings: StreamingSpec, made: list[Payload]) -> list[Chunk]:
    chunker = Chunker(settings)
    chunks = [chunk for item in made if (chunk := chunker.add(item)) is not None]
    return [*chunks, chunker.end()]


@given(streaming(), st.integers(1, 60))
def test_an_item_that_is_known_to_be_the_last_one_ends_its_chunk(settings: StreamingSpec, count: int) -> None:
    *others, last = made = items(count)
    chunker = Chunker(settings)
    chunks = [chunk for item in others if (chunk := chunker.add(item)) is not None]
    ending = chunker.add(last, is_last=True)
    assert ending is not None and ending.is_last and ending.items[-1] == last
    assert [item for chunk in (*chunks, ending) for item in chunk.items] == made


@given(streaming(), st.integers(0, 60))
def test_all_items_are_in_the_chunks_once_and_in_order(settings: StreamingSpec, count: int) -> None:
    assert [item for chunk in cut(settings, items(count)) for item in chunk.items] == items(count)


@given(streaming(), st.integers(0, 60))
def test_only_the_last_chunk_says_so_and_no_other_is_empty(settings: StreamingSpec, count: int) -> None:
    *others, last = cut(settings, items(count))
    assert last.is_last
    assert all(chunk.items and not chunk.is_last for chunk in others)


@given(streaming(), st.integers(0, 60))
def test_each_chunk_is_sent_as_soon_as_it_is_full(settings: StreamingSpec, count: int) -> None:
    first, usual = settings.initial_chunk_frames or settings.chunk_frames, settings.chunk_frames
    *full, last = cut(settings, items(count))
    assert [len(chunk.items) for chunk in full] == [first, *[usual] * (len(full) - 1)][: len(full)]
    assert len(last.items) < (usual if full else first)


@given(streaming(), st.integers(0, 60))
def test_the_context_is_what_came_just_before(settings: StreamingSpec, count: int) -> None:
    made, position = items(count), 0
    for chunk in cut(settings, made):
        assert list(chunk.context) == made[max(0, position - settings.left_context_frames) : position]
        position += len(chunk.items)
