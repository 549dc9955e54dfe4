"""Which edges cannot stream, and why."""

from itertools import pairwise
from typing import Any

import pytest

from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.resolve.graph import preset_of, stage_graph
from omni_contract.resolve.streaming import streaming_problems
from tests.support.model_files import fake_spec, spec


def graph(*edges: str) -> OmniModelSpec:
    """Fake stages; "a=>b" streams, "a->b" is whole."""
    pairs = [edge.replace("=>", "->").split("->") for edge in edges]
    names = dict.fromkeys(name for pair in pairs for name in pair)
    stages = [{"name": name, "fake": {}, "output": {"modality": "text"}} for name in names]
    listed: list[dict[str, Any]] = [
        {"from": pair[0], "to": pair[1], **({"streaming": {}} if "=>" in edge else {})}
        for pair, edge in zip(pairs, edges, strict=True)
    ]
    return fake_spec({"stages": stages, "edges": listed})


def messages(of: OmniModelSpec) -> list[str]:
    return [problem.message for problem in streaming_problems(of, stage_graph(of, preset_of(of)))]


@pytest.mark.parametrize(
    "edges",
    [
        ("a=>b", "b=>c"),
        ("a=>b", "b->c"),
        ("a->b", "b=>c"),
        ("a=>c", "b->c"),
        ("a=>b", "a=>c", "b=>d", "c=>d"),
        ("a->b", "a->c", "b=>d", "c=>d"),
        ("a=>b", "a->c"),
    ],
)
def test_graphs_whose_stages_never_wait_in_a_circle_may_stream(edges: tuple[str, ...]) -> None:
    assert messages(graph(*edges)) == []


@pytest.mark.parametrize(
    ("edges", "whole"),
    [
        (("a=>c", "a->b", "b=>c"), "a->b"),
        (("a=>c", "a=>b", "b->c"), "b->c"),
        (("a=>d", "a=>b", "b->c", "c=>d"), "b->c"),
    ],
)
@pytest.mark.case("runtime:L27")
def test_a_stream_beside_a_whole_way_round_is_refused_since_it_would_wait_for_ever(
    edges: tuple[str, ...], whole: str
) -> None:
    [message] = messages(graph(*edges))
    assert f'also waits for "{whole}", which is whole only once "a" has ended' in message


def test_an_engine_that_works_on_whole_payloads_cannot_stream() -> None:
    streaming = spec({"edges": [{"from": "denoiser", "to": "vae-decoder", "streaming": {}}]})
    assert [one.partition(";")[0] for one in messages(streaming)] == [
        f'edge "denoiser->vae-decoder" streams, but the diffusion engine of stage "{name}" works on whole payloads'
        for name in ("denoiser", "vae-decoder")
    ]


def test_a_first_chunk_larger_than_the_default_is_refused_though_the_file_says_only_one_of_the_two() -> None:
    [message] = messages(fake_spec({"edges[0].streaming": {"initialChunkFrames": 5}}))
    assert "has a first chunk of 5 frames, and its chunks have 1" in message


def test_of_a_chain_of_any_length_every_edge_may_stream() -> None:
    names = [f"s{number}" for number in range(9)]
    assert messages(graph(*(f"{one}=>{other}" for one, other in pairwise(names)))) == []
