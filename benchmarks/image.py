"""What our three processes and HTTP add to a picture: end to end minus plain diffusers, one request at a time.

    python -m benchmarks.image [--requests 40] [--dry-run]

Both sides draw the same tiny pictures with one torch thread, in turn, so that the machine's other work hits both alike;
every pair must be equal to the pixel. `image.added_ms_vs_diffusers.c1` is the difference of the medians.
"""

import argparse
import hashlib
import http.client
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.ledger import write_entry

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "tiny-qwen-image.yaml"
PEER = Path(__file__).with_name("image_peer.py")
OMNI = Path(sys.executable).with_name("omni")
PROMPT = "a red fox in the snow"
SIDE = 64
STEPS = 4
WARM_UP = 5
START_TIMEOUT_S = 180
STOP_TIMEOUT_S = 60


@dataclass(frozen=True)
class Sample:
    seconds: float
    digest: str


class Diffusers:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def draw(self, seed: int) -> Sample:
        request = {"prompt": PROMPT, "width": SIDE, "height": SIDE, "num_inference_steps": STEPS, "seed": seed}
        assert self._process.stdin and self._process.stdout
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return Sample(**json.loads(self._process.stdout.readline()))


class Served:
    """Our model over one kept connection, as the official SDK keeps it."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def draw(self, seed: int) -> Sample:
        request = {"prompt": PROMPT, "size": f"{SIDE}x{SIDE}", "steps": STEPS, "seed": seed}
        began = time.perf_counter()
        self._connection.request(
            "POST", "/v1/images/generations", json.dumps(request), {"content-type": "application/json"}
        )
        answer = json.loads(self._connection.getresponse().read())
        seconds = time.perf_counter() - began
        pixels = Image.open(io.BytesIO(b64decode(answer["data"][0]["b64_json"]))).convert("RGB").tobytes()
        return Sample(seconds, hashlib.sha256(pixels).hexdigest())

    def is_ready(self) -> bool:
        try:
            self._connection.request("GET", "/readyz")
            response = self._connection.getresponse()
            response.read()
        except OSError:
            self._connection.close()
            return False
        return response.status == 200


@contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(command, env=environment, cwd=ROOT, text=True, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(STOP_TIMEOUT_S)


@contextmanager
def served(models: Path, port: int) -> Iterator[Served]:
    command = [str(OMNI), "serve", str(EXAMPLE), "--volume", f"models={models}", "--port", str(port)]
    with (models / "serve.log").open("w") as log, running(command, stdout=log, stderr=log) as process:
        ours = Served(port)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not ours.is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"omni serve did not get ready:\n{(models / 'serve.log').read_text()[-4000:]}")
            time.sleep(0.2)
        yield ours


def measure(models: Path, port: int, requests: int) -> tuple[list[float], list[float]]:
    """Milliseconds of ours and of diffusers'."""
    peer_command = [sys.executable, str(PEER), str(models / "qwen-image")]
    pipes: Mapping[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with running(peer_command, **pipes) as process, served(models, port) as ours:
        peer = Diffusers(process)
        pairs = [(ours.draw(seed), peer.draw(seed)) for seed in range(WARM_UP + requests)]
    unequal = [seed for seed, (our, its) in enumerate(pairs) if our.digest != its.digest]
    if unequal:
        raise RuntimeError(f"pictures differ from plain diffusers for seeds {unequal}")
    measured = pairs[WARM_UP:]
    return [our.seconds * 1000 for our, _ in measured], [its.seconds * 1000 for _, its in measured]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--port", type=int, default=18431)
    parser.add_argument("--dry-run", action="store_true", help="leave the ledger alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omni-bench-") as folder:
        models = Path(folder)
        subprocess.run([str(OMNI), "tiny", "qwen-image", str(models / "qwen-image")], check=True)
        ours, peers = measure(models, options.port, options.requests)
    our_ms, peer_ms = statistics.median(ours), statistics.median(peers)
    print(f"{'':14}{'median ms':>12}{'fastest ms':>12}")
    print(f"{'ours':14}{our_ms:12.1f}{min(ours):12.1f}")
    print(f"{'plain diffusers':14}{peer_ms:11.1f}{min(peers):12.1f}")
    figure = {"id": "image.added_ms_vs_diffusers.c1", "value": round(our_ms - peer_ms, 2), "unit": "ms"}
    print(json.dumps(figure | {"peer": "diffusers", "peer_value": round(peer_ms, 2), "requests": options.requests}))
    if not options.dry_run:
        write_entry(
            "image.added_ms_vs_diffusers.c1",
            round(our_ms - peer_ms, 2),
            "ms",
            command="python -m benchmarks.image",
            peer=("diffusers", round(peer_ms, 2)),
        )


if __name__ == "__main__":
    main()
