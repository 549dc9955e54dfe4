"""Conversations with a server that tells what it was asked."""

import base64
import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from omni_runtime.terminal_chat.conversation import Conversation
from omni_runtime.terminal_chat.settings import ChatError, ChatSettings
from tests.support.media_files import audio_file, image_file, tone

SOUND = tone(samples=2_400, rate=24_000)
MODALITIES = ["text", "audio"]


@dataclass
class Server:
    """Answers "echo" and what was said last, in two parts; `refusal` is its answer instead, with status 400."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    refusal: str = ""
    sound: bytes = b""

    def events(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        content = body["messages"][-1]["content"]
        yield {"content": "echo "}
        yield {"content": content if isinstance(content, str) else content[-1]["text"]}
        if "audio" in body["modalities"]:
            for part in (self.sound[:100], self.sound[100:]):
                yield {"audio": {"data": base64.b64encode(part).decode()}}


@contextmanager
def served(**fields: Any) -> Iterator[Server]:
    server = Server(**fields)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, json.dumps({"data": [{"id": "parrot", "modalities": MODALITIES}]}), "application/json")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            server.asked.append(body)
            server.keys.append(self.headers["authorization"])
            if server.refusal:
                self._send(400, json.dumps({"error": {"message": server.refusal}}), "application/json")
                return
            events = [json.dumps({"choices": [{"delta": delta}]}) for delta in server.events(body)]
            text = "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])
            self._send(200, text, "text/event-stream")

        def _send(self, status: int, text: str, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


def talk(settings: ChatSettings, *lines: str) -> tuple[str, str]:
    """What the model said, and what else was said."""
    typed, words, notes = iter(lines), io.StringIO(), io.StringIO()

    def read(prompt: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    Conversation(settings, read, words, notes).run()
    return words.getvalue(), notes.getvalue()


def test_a_prompt_is_answered_once() -> None:
    with served() as server:
        settings = ChatSettings(server.url, prompt="hi", api_key="secret", sampling={"seed": 3})
        assert talk(settings) == ("echo hi\n", "")
    (asked,) = server.asked
    assert asked["model"] == "parrot" and asked["seed"] == 3 and asked["modalities"] == ["text"]
    assert server.keys == ["Bearer secret"]


def test_turns_remember_each_other_until_a_reset() -> None:
    with served() as server:
        words, notes = talk(
            ChatSettings(server.url, system="be brief"), "one", "", "two", "/reset", "three", "/quit", "no"
        )
    assert words == "echo one\necho two\necho three\n"
    assert "you talk to parrot" in notes and "forgotten" in notes
    system = {"role": "system", "content": "be brief"}
    told = [[message["content"] for message in asked["messages"]] for asked in server.asked]
    assert told == [["be brief", "one"], ["be brief", "one", "echo one", "two"], ["be brief", "three"]]
    assert server.asked[0]["messages"][0] == system


def test_files_go_with_what_is_said_next(tmp_path: Path) -> None:
    (tmp_path / "fox.png").write_bytes(image_file())
    (tmp_path / "fox.wav").write_bytes(audio_file(SOUND))
    with served() as server:
        talk(
            ChatSettings(server.url, images=(tmp_path / "fox.png",)), f"/audio {tmp_path}/fox.wav", "what?", "and now?"
        )
    first, second = (asked["messages"] for asked in server.asked)
    assert [part["type"] for part in first[0]["content"]] == ["image_url", "audio_url", "text"]
    assert first[0]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert second[-1] == {"role": "user", "content": "and now?"}


def test_each_spoken_answer_is_a_file_of_its_own(tmp_path: Path) -> None:
    sound = audio_file(SOUND)
    with served(sound=sound[:4] + b"\xff\xff\xff\xff" + sound[8:]) as server:
        _, notes = talk(ChatSettings(server.url, save=tmp_path / "a.wav", voice="vivian"), "one", "two")
    assert server.asked[0]["audio"] == {"format": "wav", "voice": "vivian"}
    assert [(tmp_path / name).read_bytes() for name in ("a.wav", "a-2.wav")] == [sound, sound]
    assert f"saved {tmp_path}/a-2.wav" in notes


def test_a_refusal_is_told_and_the_conversation_goes_on() -> None:
    with served(refusal="the prompt is too long") as server:
        _, notes = talk(ChatSettings(server.url), "one", "/image gone.png", "/halp")
        assert "400: the prompt is too long" in notes
        assert "gone.png: there is no such file" in notes
        assert "/reset" in notes
        with pytest.raises(ChatError, match="too long"):
            talk(ChatSettings(server.url, prompt="one"))


def test_ctrl_c_ends_an_answer_and_not_the_conversation() -> None:
    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            if "one" in text:
                raise KeyboardInterrupt
            return super().write(text)

    typed, words, notes = iter(["one", "two", "/quit"]), Interrupted(), io.StringIO()
    with served() as server:
        Conversation(ChatSettings(server.url), lambda prompt: next(typed), words, notes).run()
    assert "does not remember" in notes.getvalue()
    assert [message["content"] for message in server.asked[-1]["messages"]] == ["two"]


@pytest.mark.parametrize(
    ("settings", "word"),
    [({"model": "owl"}, "serves parrot, and not owl"), ({"url": "http://127.0.0.1:1"}, "127.0.0.1:1")],
)
def test_what_no_next_line_could_mend_ends_it(settings: dict[str, Any], word: str) -> None:
    with served() as server, pytest.raises(ChatError, match=word):
        talk(ChatSettings(**{"url": server.url, **settings}))


def player(folder: Path, script: str) -> tuple[str, ...]:
    """A player that does with its input what the script says."""
    file = folder / "player"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return (str(file),)


def test_an_answer_is_played_as_it_comes_and_may_be_saved_beside(tmp_path: Path) -> None:
    sound = audio_file(SOUND)
    with served(sound=sound) as server:
        command = player(tmp_path, f"cat > {tmp_path}/heard.wav")
        saved = tmp_path / "fox.wav"
        words, _ = talk(ChatSettings(server.url, prompt="hi", player=command, save=saved))
    assert words == "echo hi\n"
    assert (tmp_path / "heard.wav").read_bytes() == sound == saved.read_bytes()
    assert server.asked[0]["audio"] == {"format": "wav"}


def test_a_player_that_fails_costs_the_sound_alone(tmp_path: Path) -> None:
    with served(sound=audio_file(SOUND)) as server:
        command = player(tmp_path, "echo no card >&2; exit 3")
        words, notes = talk(ChatSettings(server.url, prompt="hi", player=command))
    assert words == "echo hi\n" and "the sound could not be played: no card" in notes


def test_a_player_does_not_outlive_an_answer_that_fails(tmp_path: Path) -> None:
    with served(refusal="too long") as server, pytest.raises(ChatError, match="too long"):
        talk(ChatSettings(server.url, prompt="hi", player=player(tmp_path, "exec sleep 60")))
