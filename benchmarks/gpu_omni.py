"""Qwen3-Omni's three stages on one GPU with made-up weights, text to text and speech: `python -m benchmarks.gpu_omni`.

Requests come to an orchestrator, as a frontend's do; each stage is a worker of its own. The machine with the GPU has no
ledger: with --record, the logs of our turns and of vLLM-Omni's, on the same folder in the same run, become entries.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.ledger import write_entry
from benchmarks.running import running_model
from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.resolve import ResolvedModel, resolve
from omni_runtime.local.catalog import local_catalog
from omni_runtime.local.devices import Machine, find_devices
from omni_runtime.orchestrator import FinalChunk, FinalOutput, Orchestrator, SessionRequest

COMMAND = "python -m benchmarks.gpu_omni"
SAMPLE_RATE = 24_000
TIMEOUT_S = 120
TEXT = "hello world the quick brown fox jumps over the lazy dog. " * 4
MESSAGES = [
    {"role": "system", "content": [{"type": "text", "text": "hello"}]},
    {"role": "user", "content": [{"type": "text", "text": TEXT}]},
]
SEQUENCES = 16

numbers = count()


@dataclass
class Answer:
    """When what of one request came, in seconds after it was sent."""

    text_s: float = 0.0
    audio_s: float = 0.0
    done_s: float = 0.0
    tokens: int = 0
    samples: int = 0

    def take(self, modality: str, item: Mapping[str, Any], at_s: float) -> None:
        if modality == "text":
            self.text_s = self.text_s or at_s
            self.tokens += len(item["token_ids"])
        elif samples := item["audio"].shape[0]:
            self.audio_s = self.audio_s or at_s
            self.samples += samples


@dataclass(frozen=True)
class Turn:
    """So many requests at once, by their medians."""

    batch: int
    wall_s: float
    first_text_ms: float
    first_audio_ms: float
    done_ms: float
    text_tokens: int
    audio_s_each: float
    audio_s_per_s: float


def turn_of(answers: Sequence[Answer], wall_s: float) -> Turn:
    def median_ms(values: Iterator[float]) -> float:
        return round(1000 * statistics.median(values), 1)

    return Turn(
        batch=len(answers),
        wall_s=round(wall_s, 3),
        first_text_ms=median_ms(answer.text_s for answer in answers),
        first_audio_ms=median_ms(answer.audio_s for answer in answers),
        done_ms=median_ms(answer.done_s for answer in answers),
        text_tokens=min(answer.tokens for answer in answers),
        audio_s_each=round(min(answer.samples for answer in answers) / SAMPLE_RATE, 2),
        audio_s_per_s=round(sum(answer.samples for answer in answers) / SAMPLE_RATE / wall_s, 2),
    )


async def answered(orchestrator: Orchestrator, words: int, frames: int) -> Answer:
    asked = {
        "thinker.max_tokens": words,
        "thinker.min_tokens": words,
        "thinker.ignore_eos": True,
        "thinker.temperature": 0.0,
        "thinker.repetition_penalty": 1.0,
        "talker.max_tokens": frames,
        "talker.min_tokens": frames,
        "voice": "ethan",
    }
    request = SessionRequest(f"ours-{next(numbers)}", {"messages": MESSAGES}, asked, timeout_s=TIMEOUT_S)
    answer, began = Answer(), time.perf_counter()
    async with orchestrator.submit(request) as session:
        async for event in session:
            if isinstance(event, FinalChunk | FinalOutput):
                items = event.items if isinstance(event, FinalChunk) else [event.payload]
                for item in items:
                    answer.take(event.modality, item, time.perf_counter() - began)
    answer.done_s = time.perf_counter() - began
    return answer


async def measured(orchestrator: Orchestrator, batch: int, words: int, frames: int) -> Turn:
    began = time.perf_counter()
    answers = await asyncio.gather(*(answered(orchestrator, words, frames) for _ in range(batch)))
    return turn_of(answers, time.perf_counter() - began)


def resolved(folder: Path, machine: Machine) -> ResolvedModel:
    """Stages that start at once on one device cannot measure what the others leave, so their caches are given."""
    thinker = {"max_sequences": SEQUENCES, "max_model_length": 8192, "prefix_caching": False, "kv_cache_size": "8Gi"}
    talker = {**thinker, "kv_cache_size": "4Gi"}
    spec = OmniModelSpec.model_validate(
        {
            "model": {"source": f"pvc://models/{folder.name}", "load_format": "dummy"},
            "family": "qwen3-omni",
            "stages": [
                {
                    "name": "thinker",
                    "ar": {**thinker, "extra_args": {"skip_mm_profiling": True}},
                    "accelerator": {"pool": "nvidia", "memory_fraction": 0.4},
                },
                {
                    "name": "talker",
                    "ar": talker,
                    "max_in_flight": SEQUENCES,
                    "accelerator": {"pool": "nvidia", "memory_fraction": 0.2},
                },
                {"name": "code2wav", "accelerator": {"pool": "nvidia", "memory_fraction": 0.1}},
            ],
        }
    )
    return resolve("omni", "default", spec, local_catalog(spec, machine, allow_fake_engine=False))


async def run(options: argparse.Namespace) -> None:
    machine = find_devices(Path("/dev"), {})
    began = time.perf_counter()
    async with running_model(resolved(options.model, machine), options.model.parent, machine) as orchestrator:
        print(json.dumps({"check": "start, three stages", "s": round(time.perf_counter() - began, 1)}), flush=True)
        for batch in options.batch:
            turn = await measured(orchestrator, batch, options.text, options.codec)
            print(json.dumps(asdict(turn)), flush=True)


def turns_in(log: Path) -> list[Turn]:
    lines = (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
    names = Turn.__dataclass_fields__
    return [Turn(**{name: line[name] for name in names}) for line in lines if "audio_s_per_s" in line]


def warm(turns: Sequence[Turn], batch: int) -> list[Turn]:
    """The first turn of each size makes ready what later ones use."""
    return [turn for turn in turns if turn.batch == batch][1:]


def _median(turns: Sequence[Turn], figure: str) -> float:
    return float(statistics.median(getattr(turn, figure) for turn in turns))


def record(ours: Sequence[Turn], peers: Sequence[Turn], machine: str) -> None:
    for name, unit, batch, figure in (
        ("omni.first_audio_ratio_vs_vllm_omni.h200.c1", "ms", 1, "first_audio_ms"),
        ("omni.audio_s_per_s_ratio_vs_vllm_omni.h200.c16", "audio-s/s", 16, "audio_s_per_s"),
    ):
        our, its = (round(_median(warm(side, batch), figure), 2) for side in (ours, peers))
        peer = (f"vllm-omni 0.26.0, in {unit}", its)
        entry = write_entry(name, round(our / its, 3), "times", command=COMMAND, peer=peer, on=machine)
        print(json.dumps({**asdict(entry), "ours": our}))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=COMMAND, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--model", type=Path, help="folder of a Qwen3-Omni without weights")
    what.add_argument("--record", type=Path, nargs=2, metavar=("OURS", "PEER"), help="logs of both sides' turns")
    parser.add_argument("--machine", default="NVIDIA H200, 16 cores, 126 GiB", help="where --record's logs are from")
    parser.add_argument("--text", type=int, default=64, help="tokens of each answer (default: %(default)s)")
    parser.add_argument("--codec", type=int, default=125, help="tokens of each speech (default: %(default)s)")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 1, 1, 16, 16, 16], help="requests of each turn")
    return parser.parse_args()


def main() -> int:
    options = parsed()
    if options.record:
        record(*(turns_in(log) for log in options.record), options.machine)
    else:
        uvloop.run(run(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
