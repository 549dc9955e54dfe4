"""Connections that are reset at any byte of a request or of its answer cost nobody else anything."""

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from openai import OpenAI

from tests.support.chat_client import WORDS, expected_text, said
from tests.support.fake_omni import MODEL
from tests.support.model_processes import ModelProcesses
from tests.support.process_census import census
from tests.support.waiting import settled
from tests.support.worker_stats import holds_nothing, stats_when

AT_ONCE = 16
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
BODY = json.dumps({"model": MODEL, "messages": said(WORDS), "stream": True}).encode()
HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    + f"content-length: {len(BODY)}\r\n\r\n".encode()
)
REQUEST = HEAD + BODY


@contextmanager
def connections(url: str) -> Iterator[list[socket.socket]]:
    """Some to one frontend, which are reset in the end."""
    host, _, port = url.removeprefix("http://").partition(":")
    opened = [socket.create_connection((host, int(port)), timeout=20) for _ in range(AT_ONCE)]
    yield opened
    for one in opened:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        one.close()


def reset_after(url: str, sent_bytes: int, until: bytes) -> None:
    """Sends so much of a request, and reads its answer until these bytes have come."""
    with connections(url) as opened:
        for one in opened:
            one.sendall(REQUEST[:sent_bytes])
        for one in opened:
            answer = b""
            while until not in answer:
                answer += one.recv(4096)


@pytest.mark.case("runtime:C1", "runtime:L30")
@pytest.mark.parametrize(
    ("sent_bytes", "until"),
    [
        (0, b""),
        (10, b""),
        (len(HEAD) - 1, b""),
        (len(HEAD), b""),
        (len(REQUEST) - 1, b""),
        (len(REQUEST), b""),
        (len(REQUEST), b"HTTP/1.1 200"),
        (len(REQUEST), b"data: "),
        (len(REQUEST), b'finish_reason":"stop'),
        (len(REQUEST), b"[DONE]"),
    ],
    ids=[
        "nothing sent",
        "in the request line",
        "before the end of the head",
        "before the body",
        "in the body",
        "before the answer",
        "in the head of the answer",
        "after its first event",
        "at its end",
        "after its end",
    ],
)
async def test_whatever_was_sent_and_read_before_a_reset_nothing_stays_and_others_are_served(
    talking: ModelProcesses, talking_url: str, talker: OpenAI, sent_bytes: int, until: bytes
) -> None:
    def answer() -> str | None:
        made = talker.chat.completions.create(model=MODEL, messages=said(), modalities=["text"], seed=0)
        return made.choices[0].message.content

    assert answer() == expected_text()
    before = census(talking.pid("frontend-0"))
    reset_after(talking_url, sent_bytes, until)
    assert answer() == expected_text()
    for name in talking.stages:
        await stats_when(talking.plans[name].health, holds_nothing, within_s=5)
    left = settled(lambda: census(talking.pid("frontend-0")).sockets, lambda now: now <= before.sockets, within_s=5)
    assert left <= before.sockets
