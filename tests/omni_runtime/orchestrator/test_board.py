"""What a stage would like its replica to be, from what lies on its edges."""

from typing import cast

import pytest

from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.orchestrator.board import Board
from omni_runtime.orchestrator.graph import plan
from omni_runtime.orchestrator.link import Link
from omni_runtime.orchestrator.routing import NO_WISH, ReplicaInfo, Wish
from omni_runtime.orchestrator.steps import EdgePayload, Source
from tests.support.stage_tables import image_table

EDGE, CONSUMER = "text-encoder->denoiser", "denoiser"


def board_with(source: Source) -> Board:
    board = Board(plan(image_table()))
    producer = ReplicaInfo("unix:x", "text-encoder-0", "boot", "text-encoder", "r1", 4, {}, {}, locality="node-1")
    board.payloads[EDGE] = EdgePayload(source, cast(Link, None), producer)
    return board


@pytest.mark.parametrize(
    ("source", "affinity", "wish"),
    [
        (Handle(), "", Wish(frozenset({"node-1"}))),
        (Handle(), "chat-7", Wish(frozenset({"node-1"}), "chat-7")),
        (b"inline", "chat-7", Wish(affinity="chat-7")),
    ],
)
def test_a_stage_likes_to_run_beside_inputs_that_travel_by_themselves(source: Source, affinity: str, wish: Wish):
    board = board_with(source)
    assert board.wish(board.steps[CONSUMER], affinity) == wish


def test_a_stage_whose_inputs_come_along_may_run_anywhere():
    board = board_with(b"inline")
    assert board.wish(board.steps[CONSUMER], "") is NO_WISH
