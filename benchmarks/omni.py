"""A tiny Qwen2.5-Omni in three processes of ours and whole in one of transformers: `python -m benchmarks.omni`.

The same questions get the same answers, word for word and with as many samples: 32 tokens of text, then 125 codes, or
2.5 s of sound. `omni.e2e_ratio_vs_transformers.cN` is the time from N requests at once until the last of them is
answered, ours over that of transformers' `generate`, which answers one after the other. Every process has one torch
thread. Both work in turns; the figure is the median of the turns' ratios.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.ledger import write_entry
from benchmarks.running import running_model
from omni_contract.api.load import load_model
from omni_contract.resolve import ResolvedModel, resolve
from omni_contract.wire.payload import Array, Value
from omni_runtime.local.catalog import local_catalog
from omni_runtime.local.devices import Machine
from omni_runtime.orchestrator import FinalChunk, Orchestrator, SessionRequest

COMMAND = "python -m benchmarks.omni"
ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "tiny-qwen2.5-omni.yaml"
PEER = Path(__file__).with_name("omni_peer.py")
FOLDER = "qwen2.5-omni"
CONCURRENCIES = (1, 4, 16)
WARM_UP = 2
WORDS, FRAMES, DIFFUSION_STEPS = 32, 125, 10
SAMPLES = FRAMES * 480
QUESTIONS = (
    "hello world",
    "the quick brown fox",
    "describe the image",
    "objects and background",
    "the lazy dog",
    "texture, quantity, text",
    "color, shape, size",
    "spatial relationships",
)
TIMEOUT_S = 300

numbers = count()


@dataclass
class Answer:
    words: list[int] = field(default_factory=list)
    samples: int = 0

    def add(self, event: FinalChunk) -> None:
        for item in event.items:
            match item:
                case {"token_ids": list(tokens)}:
                    self.words += [token for token in tokens if isinstance(token, int)]
                case {"audio": Array(shape=(samples,))}:
                    self.samples += samples


@dataclass(frozen=True)
class Turn:
    """How long it took until all were answered."""

    ours_s: float
    peers_s: float

    @property
    def ratio(self) -> float:
        return self.ours_s / self.peers_s


class Peer:
    """Transformers, by the lines that it reads and writes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def heard(self) -> Mapping[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"plain transformers ended with {self._process.wait()}")
        answer: Mapping[str, Any] = json.loads(line)
        return answer

    def answers(self, texts: Sequence[str]) -> list[Answer]:
        assert self._process.stdin
        for text in texts:
            asked = {"text": text, "words": WORDS, "frames": FRAMES, "steps": DIFFUSION_STEPS}
            print(json.dumps(asked), file=self._process.stdin, flush=True)
        return [Answer(told["words"], told["samples"]) for told in (self.heard() for _ in texts)]


@contextmanager
def running_peer(model: Path) -> Iterator[Peer]:
    process = subprocess.Popen(
        [sys.executable, str(PEER), str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        peer = Peer(process)
        peer.heard()
        yield peer
    finally:
        process.kill()
        process.wait()


async def our_answer(orchestrator: Orchestrator, text: str) -> Answer:
    message: dict[str, Value] = {"role": "user", "content": [{"type": "text", "text": text}]}
    parameters: dict[str, Value] = {
        "voice": "Ethan",
        "temperature": 0.0,
        "thinker.repetition_penalty": 1.0,
        "thinker.max_tokens": WORDS,
        "thinker.min_tokens": WORDS,
        "talker.repetition_penalty": 1.05,
        "talker.max_tokens": FRAMES,
        "talker.min_tokens": FRAMES,
        "code2wav.steps": DIFFUSION_STEPS,
    }
    request = SessionRequest(f"r-{next(numbers)}", {"messages": [message]}, parameters, timeout_s=TIMEOUT_S)
    answer = Answer()
    async with orchestrator.submit(request) as session:
        async for event in session:
            if isinstance(event, FinalChunk):
                answer.add(event)
    return answer


async def turn(orchestrator: Orchestrator, peer: Peer, concurrency: int) -> Turn:
    texts = [QUESTIONS[number % len(QUESTIONS)] for number in range(concurrency)]
    began = time.perf_counter()
    ours = await asyncio.gather(*(our_answer(orchestrator, text) for text in texts))
    between = time.perf_counter()
    theirs = await asyncio.to_thread(peer.answers, texts)
    ended = time.perf_counter()
    for text, one, other in zip(texts, ours, theirs, strict=True):
        if one != other or one.samples != SAMPLES:
            raise RuntimeError(f"{text!r} is answered by {one} here and by {other} there")
    return Turn(between - began, ended - between)


async def measure(model: ResolvedModel, volumes: Path, rounds: int) -> dict[int, list[Turn]]:
    """The turns of each concurrency; the first of all warms up."""
    with running_peer(volumes / FOLDER) as peer:
        async with running_model(model, volumes) as orchestrator:
            await turn(orchestrator, peer, WARM_UP)
            return {
                concurrency: [await turn(orchestrator, peer, concurrency) for _ in range(rounds)]
                for concurrency in CONCURRENCIES
            }


def resolved() -> ResolvedModel:
    spec = load_model(EXAMPLE).spec
    return resolve("tiny-omni", "default", spec, local_catalog(spec, Machine({}), allow_fake_engine=False))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog=COMMAND, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="turns of each concurrency (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="show the figures without writing them into the ledger")
    arguments = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryDirectory(prefix="omni-bench-") as folder:
        omni = Path(sys.executable).with_name("omni")
        subprocess.run([omni, "tiny", FOLDER, f"{folder}/{FOLDER}"], check=True)
        measured = uvloop.run(measure(resolved(), Path(folder), arguments.rounds))
    for concurrency, turns in measured.items():
        report(concurrency, turns, arguments.dry_run)
    return 0


def report(concurrency: int, turns: Sequence[Turn], is_dry: bool) -> None:
    ratio = round(statistics.median(one.ratio for one in turns), 3)
    ours_s, peers_s = (statistics.median(times) for times in zip(*((t.ours_s, t.peers_s) for t in turns), strict=True))
    print(f"{concurrency:3} at once: ours {ours_s:6.2f} s, transformers {peers_s:6.2f} s, ratio {ratio}")
    if not is_dry:
        peer = ("transformers' generate, in s", round(peers_s, 2))
        write_entry(f"omni.e2e_ratio_vs_transformers.c{concurrency}", ratio, "times", command=COMMAND, peer=peer)


if __name__ == "__main__":
    sys.exit(main())
