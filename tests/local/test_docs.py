"""The `serve` blocks of the documents, as typed but for the port: the first command stays up for the others."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.layout.docs import Block, all_blocks, is_as_shown
from tests.layout.source import CHECKOUT
from tests.support.model_processes import free_ports
from tests.support.serve_process import OMNI, Serve, serving

DOCUMENTED_PORT = "8000"


@pytest.mark.parametrize("block", [block for block in all_blocks() if block.needs == "serve"], ids=str)
def test_serving_prints_what_the_document_says(
    block: Block, tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = block.commands
    assert first.words[:2] == ["omni", "serve"]
    shutil.copytree(CHECKOUT / "examples", tmp_path / "examples")
    (tmp_path / "models").symlink_to(models)
    monkeypatch.chdir(tmp_path)
    (port,) = map(str, free_ports(1))
    with serving(*first.words[2:], "--port", port, folder=tmp_path) as serve:
        serve.url()
        shown = first.printed.replace(DOCUMENTED_PORT, port)
        assert is_as_shown(serve.log() + serve.printed(), shown), serve.log() + serve.printed()
        for command in others:
            line = command.line.replace(DOCUMENTED_PORT, port)
            done = subprocess.run(
                ["bash", "-c", line], env=with_omni(), capture_output=True, text=True, timeout=120, check=True
            )
            assert is_as_shown(done.stdout, command.printed), done.stdout[:200]


def with_omni() -> dict[str, str]:
    """The environment of a user whose PATH has `omni`."""
    return {**os.environ, "PATH": f"{OMNI.parent}:{os.environ['PATH']}"}


@dataclass(frozen=True)
class Example:
    """What is served, and what becomes of the requests that are printed for it."""

    file: str
    flags: tuple[str, ...]
    answered: str | None
    """None if the request saves the answer itself."""
    saved: str
    begins: bytes


EXAMPLES = [
    Example("tiny-qwen-image.yaml", (), '"b64_json"', "fox.png", b"\x89PNG"),
    Example("tiny-qwen3-tts.yaml", (), None, "hello.mp3", b"ID3"),
    Example("fake-omni.yaml", ("--allow-fake-engine",), '"content":"', "hello.wav", b"RIFF"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.file)
def test_the_printed_requests_work_as_they_stand(
    example: Example, tmp_path: Path, served: Callable[..., Serve], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    curl, snippet = printed_requests(served(CHECKOUT / "examples" / example.file, *example.flags).printed())
    answer = subprocess.run(["bash", "-c", curl], capture_output=True, text=True, timeout=120, check=True).stdout
    if example.answered is None:
        assert (tmp_path / example.saved).read_bytes().startswith(example.begins)
        (tmp_path / example.saved).unlink()
    else:
        assert example.answered in answer
    subprocess.run([OMNI.with_name("python"), "-c", snippet], timeout=120, check=True)
    assert (tmp_path / example.saved).read_bytes().startswith(example.begins)


def printed_requests(printed: str) -> tuple[str, str]:
    """The curl command and the Python lines of the banner."""
    lines = [line.removeprefix("  ") for line in printed.splitlines()]
    curl = lines.index(next(line for line in lines if line.startswith("curl ")))
    code = lines.index(next(line for line in lines if line.startswith(("from base64", "from openai"))))
    assert shlex.split("\n".join(lines[curl:code]))[0] == "curl"
    return "\n".join(lines[curl:code]), "\n".join(lines[code : lines.index("Ctrl-C stops it.")])
