"""`omni serve` starts, tells, restarts, stops, and leaves nothing. Fake engines: what is tested is the supervisor."""

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

import psutil
import pytest
from openai import OpenAI

from tests.local.conftest import fake_model_file
from tests.support.serve_process import Serve, serving
from tests.support.waiting import settled
from tests.support.worker_stats import stats_when

FAKES = "--allow-fake-engine"


def picture(url: str, seed: int = 1) -> str | None:
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    answer = client.images.generate(model="fake-painter", prompt="a red fox", size="64x64", extra_body={"seed": seed})
    return answer.data[0].b64_json if answer.data else None


def worker(serve: Serve, stage: str) -> psutil.Process:
    found = [one for pid in serve.processes() if f"{stage}.json" in " ".join((one := psutil.Process(pid)).cmdline())]
    assert len(found) == 1
    return found[0]


def left_behind(serve: Serve) -> list[str]:
    return [str(path) for path in serve.runtime_dir.rglob("*") if path.name not in ("omni", "lock")]


def test_each_process_tells_that_it_is_ready_and_the_address_works(tmp_path: Path) -> None:
    with serving(*fake_model_file(tmp_path), folder=tmp_path) as serve:
        assert picture(serve.url())
        for name in ("text-encoder", "denoiser", "vae-decoder", "frontend"):
            assert any(line.startswith(f"{name} ") and " ready in " in line for line in serve.log().splitlines())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.case("runtime:L4")
def test_a_signal_drains_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with serving(*fake_model_file(tmp_path), folder=tmp_path) as serve:
        serve.url()
        serve.signal(number)
        assert serve.wait() == 0
        assert serve.processes() == set()
        assert left_behind(serve) == []


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    arguments = fake_model_file(tmp_path, denoiser="behavior: stall")
    with serving(*arguments, folder=tmp_path) as serve, socket.create_connection(address(serve.url())) as client:
        client.sendall(request_bytes())
        asyncio.run(stats_when(socket_of(serve, "denoiser"), lambda now: now.running == 1, within_s=10))
        serve.signal(signal.SIGINT)
        settled(lambda: "press Ctrl-C again" in serve.log(), bool, within_s=10)
        serve.signal(signal.SIGINT)
        assert serve.wait(10) == 130
        assert serve.processes() == set()
        assert left_behind(serve) == []


@pytest.mark.case("runtime:L2", "runtime:L5", "runtime:L6")
def test_nothing_survives_kill_9_of_the_supervisor(tmp_path: Path) -> None:
    with serving(*fake_model_file(tmp_path), folder=tmp_path) as serve:
        serve.url()
        assert len(serve.processes()) == 5
        serve.signal(signal.SIGKILL)
        serve.wait()
        assert serve.remains(within_s=5) == set()
        abandoned = left_behind(serve)
        assert abandoned
    with serving(*fake_model_file(tmp_path), folder=tmp_path) as next_one:
        next_one.url()
        assert not any(Path(path).exists() for path in abandoned)


@pytest.mark.parametrize("when", ["starting", "ready"])
def test_stopping_while_it_starts_leaves_nothing_either(tmp_path: Path, when: str) -> None:
    with serving(*fake_model_file(tmp_path), folder=tmp_path) as serve:
        settled(lambda: f"denoiser       {when}" in serve.log(), bool, within_s=30)
        serve.signal(signal.SIGTERM)
        assert serve.wait() == 0
        assert serve.processes() == set()
        assert left_behind(serve) == []


def test_a_crashed_stage_is_started_again_with_the_reason(tmp_path: Path) -> None:
    with serving(*fake_model_file(tmp_path), folder=tmp_path) as serve:
        url = serve.url()
        first = worker(serve, "denoiser")
        first.kill()
        restarted = "denoiser       was killed by SIGKILL (out of memory, or kill -9); starting it again in 0.5 s"
        assert settled(lambda: restarted in serve.log(), bool, within_s=10), serve.log()
        assert settled(lambda: serve.log().count("denoiser       ready in") == 2, bool, within_s=30)
        assert picture(url)
        assert worker(serve, "denoiser").pid != first.pid


def test_a_stage_that_cannot_load_ends_serve_with_its_last_words(tmp_path: Path) -> None:
    with serving(*fake_model_file(tmp_path, "behavior: crash, crashAt: 0"), folder=tmp_path) as serve:
        assert serve.wait() == 1
        assert "denoiser did not start: exited with code 3" in serve.log()
        assert "the fake engine is told to crash while it loads" in serve.log()
        assert serve.processes() == set()
        assert left_behind(serve) == []


def test_a_port_in_use_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with serving(*fake_model_file(tmp_path), "--port", port, folder=tmp_path) as serve:
            assert serve.wait() == 2
            assert (
                f"cannot listen on 127.0.0.1:{port}: Address already in use; choose another with --port" in serve.log()
            )
            assert "starting" not in serve.log()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--volume", "other=.", FAKES), "say which folder that is with --volume models=DIR"),
        (("--volume", "models=/absent", FAKES), "/absent is not a folder"),
        (("--volume", "models=.", "--device", "nvidia", FAKES), "--device nvidia: this machine has cpu"),
        (("--volume", "models=."), 'stage "text-encoder" uses the fake engine, which is switched off here'),
    ],
)
def test_wrong_input_is_refused_with_the_way_out(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    file, *_ = fake_model_file(tmp_path)
    with serving(file, *arguments, folder=tmp_path) as serve:
        assert serve.wait() == 2
        assert message in serve.log()


def test_json_logs_are_one_object_a_line_with_the_stage(tmp_path: Path) -> None:
    with serving(*fake_model_file(tmp_path), "--log-json", folder=tmp_path) as serve:
        picture(serve.url())
        serve.signal(signal.SIGTERM)
        assert serve.wait() == 0
        lines = [json.loads(line) for line in serve.log().splitlines()]
    assert {"text-encoder", "denoiser", "vae-decoder"} <= {line.get("stage") for line in lines}


def test_a_terminal_shows_one_living_line(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    with serving(*fake_model_file(tmp_path), folder=tmp_path, terminal=theirs) as serve:
        serve.url()
        shown = os.read(ours, 65536).decode()
    os.close(ours)
    os.close(theirs)
    assert "denoiser 0 s" in shown
    assert "\r\x1b[K" in shown


def socket_of(serve: Serve, stage: str) -> str:
    (path,) = serve.runtime_dir.rglob(f"{stage}-0.sock")
    return f"unix:{path}"


def address(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    return host, int(port)


def request_bytes() -> bytes:
    body = b'{"model": "fake-painter", "prompt": "a red fox", "size": "64x64"}'
    head = "POST /v1/images/generations HTTP/1.1\r\nhost: x\r\ncontent-type: application/json"
    return f"{head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
