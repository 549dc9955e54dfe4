"""When an answer begins to sound, and when it ends: `python -m benchmarks.first_audio`.

Three fake stages in processes of their own with fixed costs: a thinker makes 200 tokens of 10 ms each, a talker 125
frames of 12 ms each, with a token before each for as long as any come, and a vocoder decodes up to 25 frames in 15 ms.
Edges, workers and orchestrator are the real ones, once with edges that stream and once with whole payloads. A streamed
chunk has a token, or 25 frames, the first one 5.

What no runtime could beat, each stage on a device of its own:
- streaming, the first sound comes after one token, the 5 frames of the first chunk, and their decoding:
  10 + 5 * 12 + 15 = 85 ms; the answer ends with the text, after 200 * 10 = 2,000 ms, since the sound is complete
  after 10 + 125 * 12 + 15 = 1,525 ms;
- not streaming, stages follow each other: 200 * 10 + 125 * 12 + 15 = 3,515 ms to the first sound, and four more
  decodings, 3,575 ms, to the end.

`first_audio.speedup` is the time to the first sound without streaming over that with it, one request at a time, and
`first_audio.vs_critical_path` that with it over the 85 ms; `first_audio.e2e_ratio.cN` is the time to the end with
streaming over that without, N requests at once. `first_audio.overhead_ms` is the time to the first sound, streaming, of
stages that cost nothing, and `first_audio.overhead_e2e_ms.on` and `.off` that to the end.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

import uvloop

from benchmarks.ledger import write_entry
from benchmarks.running import running_model
from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.resolve import ResolvedModel, resolve
from omni_runtime.local.catalog import local_catalog
from omni_runtime.local.devices import Machine
from omni_runtime.orchestrator import FinalChunk, Orchestrator, SessionRequest

COMMAND = "python -m benchmarks.first_audio"
TOKENS = 200
FRAMES = 125
CHUNK_FRAMES = 25
FIRST_FRAMES = 5
"""Their sound, 80 ms each, lasts until that of the next chunk has come."""
CONCURRENCIES = (1, 4, 16)
ROUNDS = 3
TIMEOUT_S = 120

Figures: TypeAlias = dict[str, tuple[float, str, tuple[str, float] | None]]
"""Value, unit and peer by id."""

numbers = count()


@dataclass(frozen=True)
class Costs:
    """In seconds: of a token, a frame, and the decoding of a chunk."""

    token_s: float = 0.010
    frame_s: float = 0.012
    decode_s: float = 0.015

    @property
    def first_sound_s(self) -> float:
        """The shortest way to it."""
        return self.token_s + FIRST_FRAMES * self.frame_s + self.decode_s


REAL, NOTHING = Costs(), Costs(0, 0, 0)


@dataclass(frozen=True)
class Timed:
    """One answer, in seconds from its request."""

    first_sound_s: float
    end_s: float


@dataclass(frozen=True)
class Sides:
    """The same stages with edges that stream and that do not."""

    on: Orchestrator
    off: Orchestrator


def talking_model(costs: Costs, is_streaming: bool) -> ResolvedModel:
    """As a model file says it."""
    thinker = {"behavior": "burst", "steps": TOKENS, "delaySeconds": costs.token_s}
    talker = {"behavior": "follow", "steps": FRAMES, "delaySeconds": costs.frame_s}
    vocoder = {"behavior": "relay", "itemsPerStep": CHUNK_FRAMES, "delaySeconds": costs.decode_s}
    words = {"enabled": is_streaming}
    codes = {"enabled": is_streaming, "chunkFrames": CHUNK_FRAMES, "initialChunkFrames": FIRST_FRAMES}
    spec = OmniModelSpec.model_validate(
        {
            "model": {"source": "pvc://models/none", "loadFormat": "dummy"},
            "stages": [
                {"name": "thinker", "fake": thinker, "output": {"modality": "text"}},
                {"name": "talker", "fake": talker},
                {"name": "vocoder", "fake": vocoder, "output": {"modality": "audio"}},
            ],
            "edges": [
                {"from": "thinker", "to": "talker", "streaming": words},
                {"from": "talker", "to": "vocoder", "streaming": codes},
            ],
        }
    )
    return resolve("talking", "default", spec, local_catalog(spec, Machine({}), allow_fake_engine=True))


@asynccontextmanager
async def both_sides(costs: Costs) -> AsyncIterator[Sides]:
    async with (
        running_model(talking_model(costs, is_streaming=True)) as on,
        running_model(talking_model(costs, is_streaming=False)) as off,
    ):
        yield Sides(on, off)


async def answer(orchestrator: Orchestrator) -> Timed:
    """One request to its end; the sound must be all there."""
    request = SessionRequest(f"r-{next(numbers)}", {"prompt": "say it"}, timeout_s=TIMEOUT_S)
    began, first_sound, sounds = time.perf_counter(), 0.0, 0
    async with orchestrator.submit(request) as session:
        async for event in session:
            if isinstance(event, FinalChunk) and event.modality == "audio" and event.items:
                first_sound = first_sound or time.perf_counter()
                sounds += len(event.items)
    if sounds < FRAMES // CHUNK_FRAMES:
        raise RuntimeError(f"the answer has {sounds} pieces of sound")
    return Timed(first_sound - began, time.perf_counter() - began)


async def together(orchestrator: Orchestrator, concurrency: int) -> Timed:
    """The medians of as many requests that begin at once."""
    answers = await asyncio.gather(*(answer(orchestrator) for _ in range(concurrency)))
    return median(answers)


def median(answers: Sequence[Timed]) -> Timed:
    return Timed(
        statistics.median(one.first_sound_s for one in answers), statistics.median(one.end_s for one in answers)
    )


async def turns(sides: Sides, concurrency: int, rounds: int) -> tuple[Timed, Timed]:
    """Medians of both sides, in turns; the first of each warms up."""
    on, off = [], []
    for _ in range(rounds + 1):
        on.append(await together(sides.on, concurrency))
        off.append(await together(sides.off, concurrency))
    return median(on[1:]), median(off[1:])


async def measure(rounds: int) -> Figures:
    figures: Figures = {}
    async with both_sides(REAL) as sides:
        for concurrency in CONCURRENCIES:
            on, off = await turns(sides, concurrency, rounds)
            tell(f"{concurrency} at once", on, off)
            peer = ("the same without streaming, in s", round(off.end_s, 3))
            figures[f"first_audio.e2e_ratio.c{concurrency}"] = (round(on.end_s / off.end_s, 3), "times", peer)
            if concurrency == 1:
                figures |= of_first_sound(on, off)
    async with both_sides(NOTHING) as sides:
        on, off = await turns(sides, 1, 4 * rounds)
        tell("at no cost", on, off)
    figures["first_audio.overhead_ms"] = (round(on.first_sound_s * 1000, 2), "ms", None)
    figures["first_audio.overhead_e2e_ms.on"] = (round(on.end_s * 1000, 1), "ms", None)
    figures["first_audio.overhead_e2e_ms.off"] = (round(off.end_s * 1000, 1), "ms", None)
    return figures


def of_first_sound(on: Timed, off: Timed) -> Figures:
    without = ("the same without streaming, in s", round(off.first_sound_s, 3))
    analytic = ("the shortest way, in s", round(REAL.first_sound_s, 3))
    return {
        "first_audio.speedup": (round(off.first_sound_s / on.first_sound_s, 1), "times", without),
        "first_audio.vs_critical_path": (round(on.first_sound_s / REAL.first_sound_s, 3), "times", analytic),
    }


def tell(what: str, on: Timed, off: Timed) -> None:
    for name, one in (("streaming", on), ("whole", off)):
        print(f"{what:12} {name:10} first sound {one.first_sound_s * 1000:8.1f} ms, end {one.end_s * 1000:8.1f} ms")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog=COMMAND, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns of each side (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="show the figures without writing them into the ledger")
    arguments = parser.parse_args()
    figures = uvloop.run(measure(arguments.rounds))
    for entry_id, (value, unit, peer) in figures.items():
        print(f"{entry_id}: {value} {unit}")
        if not arguments.dry_run:
            write_entry(entry_id, value, unit, command=COMMAND, peer=peer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
