"""Tokens a second of an ar stage, over those of plain vLLM with the same model and settings: `python -m benchmarks.ar`.

Ours is what a frontend has: an orchestrator, and a worker with the engine in it, each token a message. The peer is
vLLM's AsyncLLM, driven in its own process. Both make the same tokens of the same prompts, in turns, each measured until
its last request is over, ours in all stages; of each pair of turns the ratio is taken, and for each batch size the
median of the ratios. The figure is the worst batch size's. `ended_ms` is what of ours lies behind the last token.

Without --model, a tiny one with random weights is made. With --hidden-layers our stage sends these layers' states with
each token to a second process, beside the text; the peer's does not.
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
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from benchmarks.ledger import write_entry
from benchmarks.running import running_model
from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.resolve import ResolvedModel, resolve, stage_file
from omni_runtime.engines.ar.settings import settings_of
from omni_runtime.local.catalog import local_catalog
from omni_runtime.local.devices import Machine, find_devices
from omni_runtime.orchestrator import FinalChunk, Orchestrator, SessionRequest

COMMAND = "python -m benchmarks.ar"
PEER = Path(__file__).with_name("ar_peer.py")
STAGE = "writer"
OURS_ALONE = ("worker_extension_cls", "distributed_executor_backend")
"""Engine arguments that say how our process and vLLM's hang together; the peer has vLLM's own."""
SETTLE_S = 1.5
"""Workers of vLLM look for work without rest for a second after the last."""
TIMEOUT_S = 600
FIRST_TOKEN = 4
PROMPT_TOKENS = 300
"""Ids that any vocabulary has, apart from special ones at its beginning."""

numbers = count()


@dataclass(frozen=True)
class Load:
    """So many requests at once, each with a prompt of its own."""

    batch: int
    input_tokens: int
    output_tokens: int

    def prompts(self, salt: int) -> list[list[int]]:
        """Unlike those of any other salt, so that nothing is found in a cache."""
        return [
            [FIRST_TOKEN + (place * 7919 + (salt * 64 + row) * 104_729) % PROMPT_TOKENS for place in self._places]
            for row in range(self.batch)
        ]

    @property
    def _places(self) -> range:
        return range(self.input_tokens)


@dataclass
class Answered:
    """One request's tokens, when the last of them came, and when all of its stages were done."""

    tokens: int = 0
    last_s: float = 0.0
    ended_s: float = 0.0

    def take(self, tokens: int) -> None:
        self.tokens += tokens
        if tokens:
            self.last_s = time.perf_counter()


class OurTurn(NamedTuple):
    """`ended_s` is how long after the last token the last request was over."""

    tokens_per_s: float
    ended_s: float


@dataclass(frozen=True)
class Turns:
    """Tokens a second of one batch size, turn by turn."""

    batch: int
    ours: Sequence[OurTurn]
    peers: Sequence[float]

    @property
    def ratio(self) -> float:
        return statistics.median(self._ratios)

    @property
    def _ratios(self) -> list[float]:
        return [our.tokens_per_s / its for our, its in zip(self.ours, self.peers, strict=True)]

    def line(self) -> str:
        figures = {
            "batch": self.batch,
            "ours_tok_s": round(statistics.median(our.tokens_per_s for our in self.ours), 1),
            "vllm_tok_s": round(statistics.median(self.peers), 1),
            "ratio": round(self.ratio, 3),
            "ratios": [round(ratio, 3) for ratio in self._ratios],
            "ended_ms": round(1000 * statistics.median(our.ended_s for our in self.ours), 1),
        }
        return json.dumps(figures)


class Peer:
    """vLLM, by the lines that it reads and writes. What else it says is in `log`."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self._process = process
        self._log = log

    def heard(self) -> Mapping[str, float]:
        assert self._process.stdout
        for line in self._process.stdout:
            # vLLM writes to the same pipe what it has to say.
            if line.startswith("{"):
                answer: Mapping[str, float] = json.loads(line)
                return answer
        raise RuntimeError(f"plain vLLM ended with {self._process.wait()}:\n{self._log.read_text()[-4000:]}")

    def tokens_per_s(self, prompts: list[list[int]], tokens: int) -> float:
        assert self._process.stdin
        print(json.dumps({"prompts": prompts, "tokens": tokens}), file=self._process.stdin, flush=True)
        answer = self.heard()
        _check(int(answer["tokens"]), len(prompts) * tokens)
        return answer["tokens"] / answer["seconds"]


@contextmanager
def starting_peer(model: ResolvedModel, volumes: Path, log: Path) -> Iterator[Peer]:
    """It says a line once it is ready."""
    settings = settings_of(stage_file(model, STAGE, "benchmark", str(volumes)))
    plain = replace(settings, block=settings.block.model_copy(update={"hidden_layers": ()}))
    arguments = {name: value for name, value in plain.engine_arguments().items() if name not in OURS_ALONE}
    with log.open("w") as said:
        process = subprocess.Popen(
            [sys.executable, str(PEER), json.dumps(arguments | {"model": str(volumes / settings.folder.name)})],
            # Its sockets would stay behind anywhere else.
            env={**os.environ, **plain.environment, "VLLM_RPC_BASE_PATH": str(log.parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
    try:
        yield Peer(process, log)
    finally:
        assert process.stdin
        process.stdin.close()
        process.wait(TIMEOUT_S)


async def answered(orchestrator: Orchestrator, prompt: list[int], tokens: int) -> Answered:
    asked = {"temperature": 0.0, "max_tokens": tokens, "ignore_eos": True}
    request = SessionRequest(f"ours-{next(numbers)}", {"prompt_token_ids": prompt}, asked, timeout_s=TIMEOUT_S)
    answer = Answered()
    async with orchestrator.submit(request) as session:
        async for event in session:
            if isinstance(event, FinalChunk) and event.stage == STAGE:
                answer.take(sum(len(_tokens(item)) for item in event.items))
    answer.ended_s = time.perf_counter()
    return answer


async def our_turn(orchestrator: Orchestrator, prompts: list[list[int]], tokens: int) -> OurTurn:
    began_s = time.perf_counter()
    answers = await asyncio.gather(*(answered(orchestrator, prompt, tokens) for prompt in prompts))
    made, last_s = sum(answer.tokens for answer in answers), max(answer.last_s for answer in answers)
    _check(made, len(prompts) * tokens)
    ended_s = max(answer.ended_s for answer in answers)
    return OurTurn(made / (ended_s - began_s), ended_s - last_s)


async def measure(orchestrator: Orchestrator, peer: Peer, load: Load, rounds: int) -> Turns:
    """The first turn of each warms up."""
    ours, peers = list[OurTurn](), list[float]()
    for salt in range(rounds + 1):
        prompts = load.prompts(salt)
        ours.append(await our_turn(orchestrator, prompts, load.output_tokens))
        peers.append(await asyncio.to_thread(peer.tokens_per_s, prompts, load.output_tokens))
        await asyncio.sleep(SETTLE_S)
    return Turns(load.batch, ours[1:], peers[1:])


@asynccontextmanager
async def both_sides(options: argparse.Namespace) -> AsyncIterator[tuple[Orchestrator, Peer]]:
    with tempfile.TemporaryDirectory(prefix="omni-bench-") as made:
        folder = options.model.absolute() if options.model else _tiny_model(Path(made) / "tiny")
        machine = find_devices(Path("/dev"), os.environ) if options.device == "cuda" else Machine({})
        model = resolved(options, folder.name, machine)
        async with AsyncExitStack() as sides:
            its = starting_peer(model, folder.parent, Path(made) / "vllm.log")
            # While one measures what memory is left, the other must take none.
            peer = sides.enter_context(its) if options.kv_cache_size else None
            orchestrator = await sides.enter_async_context(running_model(model, folder.parent, machine))
            peer = peer or sides.enter_context(its)
            await asyncio.to_thread(peer.heard)
            yield orchestrator, peer


def resolved(options: argparse.Namespace, folder: str, machine: Machine) -> ResolvedModel:
    on_device = options.device == "cuda"
    block: dict[str, Any] = {
        "dtype": options.dtype,
        "max_model_length": options.max_model_length,
        "max_sequences": max(options.batch),
        "hidden_layers": tuple(options.hidden_layers),
        # Prompts are unlike each other, and ours with hidden states would have to compute them again.
        "prefix_caching": False,
        **({"memory_utilization": options.memory_fraction} if on_device else {}),
        **({"kv_cache_size": options.kv_cache_size} if options.kv_cache_size else {}),
    }
    accelerator = {"pool": "nvidia" if on_device else "cpu"}
    writer = {"name": STAGE, "ar": block, "output": {"modality": "text"}, "accelerator": accelerator}
    reader = {
        "name": "reader",
        "fake": {},
        "output": {"modality": "image"},
        "accelerator": {"pool": "cpu"},
        "max_in_flight": 1024,
    }
    spec = OmniModelSpec.model_validate(
        {
            "model": {"source": f"pvc://models/{folder}", "load_format": options.load_format},
            "stages": [writer, reader] if options.hidden_layers else [writer],
            "edges": [{"from": STAGE, "to": "reader", "streaming": {}}] if options.hidden_layers else [],
        }
    )
    return resolve("ar", "default", spec, local_catalog(spec, machine, allow_fake_engine=True))


async def run(options: argparse.Namespace) -> list[Turns]:
    measured = []
    async with both_sides(options) as (orchestrator, peer):
        for batch in options.batch:
            load = Load(batch, options.input_tokens, options.output_tokens)
            measured.append(await measure(orchestrator, peer, load, options.rounds))
            print(measured[-1].line(), flush=True)
    return measured


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=COMMAND, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, help="folder of a model that vLLM knows")
    parser.add_argument("--load-format", choices=("auto", "dummy"), default="auto", help="dummy: random weights")
    parser.add_argument("--dtype", default="float32", help="of weights and states (default: %(default)s)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--memory-fraction", type=float, default=0.4, help="of the device, for each of the two sides")
    parser.add_argument("--kv-cache-size", help='of each of the two, as in "8Gi"; they start at the same time then')
    parser.add_argument("--hidden-layers", type=int, nargs="*", default=[], help="whose states leave with each token")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 16], help="requests at once")
    parser.add_argument("--input-tokens", type=int, default=64)
    parser.add_argument("--output-tokens", type=int, default=256)
    parser.add_argument("--max-model-length", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side (default: %(default)s)")
    parser.add_argument("--label", help="what the figure's id ends with; left out, the device")
    parser.add_argument("--dry-run", action="store_true", help="show the figures without writing them into the ledger")
    return parser.parse_args()


def main() -> int:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    options = parsed()
    worst = min(uvloop.run(run(options)), key=lambda turns: turns.ratio)
    entry_id = f"ar.tok_s_ratio_vs_vllm.{options.label or options.device}"
    peer = (f"vLLM's AsyncLLM, in tokens/s at batch {worst.batch}", round(statistics.median(worst.peers), 1))
    print(json.dumps({"id": entry_id, "value": round(worst.ratio, 3), "peer": peer[0], "peer_value": peer[1]}))
    if not options.dry_run:
        write_entry(entry_id, round(worst.ratio, 3), "times", command=_command(), peer=peer)
    return 0


def _command() -> str:
    return " ".join((COMMAND, *sys.argv[1:]))


def _tiny_model(folder: Path) -> Path:
    from tests.models import tiny_text

    tiny_text.build(folder)
    return folder


def _tokens(item: Mapping[str, Any]) -> Sequence[int]:
    tokens: Sequence[int] = item["token_ids"]
    return tokens


def _check(made: int, wanted: int) -> None:
    if made != wanted:
        raise RuntimeError(f"{made} tokens were made, and {wanted} were asked for")


if __name__ == "__main__":
    sys.exit(main())
