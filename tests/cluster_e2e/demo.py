"""`make demo`: a picture from local processes, then the same file on a real kind cluster, equal to plain diffusers.

Leaves the cluster up, so that it can be looked at; `make cluster-down` removes it.
"""

import argparse
import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy
from PIL import Image as Picture

from benchmarks.ledger import write_entry
from omni_runtime.local.tiny_demo import PICTURE as LOCAL_PICTURE
from tests.cluster.commands import run as run_command
from tests.cluster.kind.cluster import KindCluster
from tests.cluster.programs import ensure
from tests.cluster.recipes import HELM
from tests.cluster.settings import REPOSITORY, Settings
from tests.cluster.steps import Steps
from tests.cluster_e2e import inside, models
from tests.cluster_e2e.installation import Installation
from tests.support.helm import Helm
from tests.support.reference_images import ReferenceRequest, reference_images

NAMESPACE = "demo"
MODEL = "tiny-qwen-image"
CLUSTER_PICTURE = REPOSITORY / "demo-cluster.png"
ASKED = ReferenceRequest("a red fox in the snow", seed=1)
APPLY = f"kubectl apply -n {NAMESPACE} -f {models.EXAMPLE.relative_to(REPOSITORY)}"
LOCAL_TIMEOUT_S = 300
SERVES = "Ctrl-C stops it."
"""The last line that is printed once everything runs and the picture is there."""


@dataclass
class Phases:
    """What the demo did and how long each part took."""

    began: float
    rows: list[tuple[str, float]] = field(default_factory=list)

    @contextmanager
    def phase(self, title: str) -> Iterator[None]:
        print(f"\n== {title}", flush=True)
        begun = time.time()
        yield
        self.rows.append((title, time.time() - begun))

    @property
    def total_s(self) -> float:
        return time.time() - self.began

    def table(self) -> str:
        before = self.total_s - sum(seconds for _, seconds in self.rows)
        rows = [("before: make install", before)] * (before >= 1) + self.rows + [("total", self.total_s)]
        return "\n".join(f"  {seconds:7.1f} s  {title}" for title, seconds in rows)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_e2e.demo", description=__doc__)
    parser.add_argument("--since", type=float, help="Unix time at which `make demo` was called; default: now")
    arguments = parser.parse_args(words)
    settings = Settings.from_environment(os.environ)
    cluster = KindCluster(settings, Steps())
    ledger_id = figure(settings, cluster)
    phases = Phases(arguments.since or time.time())
    run(phases, cluster)
    print(f"\n{phases.table()}\n\n{whats_next(cluster)}")
    if ledger_id:
        write_entry(ledger_id, round(phases.total_s, 1), "s", command="make demo")
    return 0


def figure(settings: Settings, cluster: KindCluster) -> str:
    """Which figure this run measures; none if the cluster was up before it began."""
    if not settings.programs.exists():
        return "demo.cold_s"
    return "" if cluster.is_up() else "demo.warm_s"


def run(phases: Phases, cluster: KindCluster) -> None:
    with phases.phase("a picture by three local processes"):
        local_picture(cluster.settings.models)
    # Beside the cluster: much of what makes one keeps a single core busy, or none.
    with phases.phase("a kind cluster"), ThreadPoolExecutor(1) as beside:
        helm = beside.submit(ensure, cluster.settings, (HELM,), cluster.steps)
        cluster.up()
        cluster.make_volumes(NAMESPACE)
        installation = Installation(cluster, Helm(helm.result()["helm"], cluster.kubeconfig))
    with phases.phase("container images, built and loaded"):
        images = installation.images()
        installation.load(images)
    with phases.phase("the Helm chart"):
        installation.install(images)
    with phases.phase(f"{APPLY}, until it is Ready"):
        models.delete(cluster, NAMESPACE, MODEL)
        type_kubectl(cluster, *APPLY.split()[1:])
        models.wait_ready(cluster, NAMESPACE, MODEL, lambda line: print(f"          {line}", flush=True))
    with phases.phase("a picture from inside the cluster, by the openai SDK"):
        url = models.get(cluster, NAMESPACE, "omnimodel", MODEL)["status"]["endpoints"]["url"]
        runtime = next(image.reference for image in images if image.name == "runtime-cpu")
        CLUSTER_PICTURE.write_bytes(inside.picture(cluster, NAMESPACE, runtime, url, MODEL, ASKED))
        print(f"          {CLUSTER_PICTURE.name}, from {url}")
    with phases.phase("the same picture by plain diffusers in one process"):
        compare(CLUSTER_PICTURE.read_bytes(), cluster.settings.models / "qwen-image")


def local_picture(folder: Path) -> None:
    """Run what `make serve` runs until it says that it serves."""
    command = [sys.executable, "-m", "omni_runtime.local.tiny_demo", "--models", str(folder), "--port", "0"]
    with subprocess.Popen(
        command, cwd=REPOSITORY, start_new_session=True, stdout=subprocess.PIPE, text=True
    ) as process:
        limit = threading.Timer(LOCAL_TIMEOUT_S, process.send_signal, [signal.SIGINT])
        limit.start()
        serves = any(map(is_last_line, process.stdout or ()))
        limit.cancel()
        process.send_signal(signal.SIGINT)
    if not serves:
        raise SystemExit("the local model made no picture; its output is above")
    print(f"          {LOCAL_PICTURE}")


def is_last_line(line: str) -> bool:
    print(line, end="", flush=True)
    return line.strip() == SERVES


def type_kubectl(cluster: KindCluster, *words: str) -> None:
    """As a person does in the checkout, with what it answers."""
    printed = run_command([cluster.programs["kubectl"], *words], env=cluster.environment, cwd=REPOSITORY)
    print(textwrap.indent(printed, " " * 10), end="", flush=True)


def compare(png: bytes, checkpoint: Path) -> None:
    made = numpy.asarray(Picture.open(io.BytesIO(png)).convert("RGB"))
    (expected,) = reference_images(checkpoint, [ASKED])
    if not numpy.array_equal(made, expected):
        raise SystemExit(f"the pictures differ in {int((made != expected).any(axis=-1).sum())} pixels")
    print(f"          equal: all {made.shape[0]} x {made.shape[1]} pixels")


def whats_next(cluster: KindCluster) -> str:
    return (
        f"The cluster stays up:\n"
        f"  export KUBECONFIG={cluster.kubeconfig}\n"
        f"  kubectl get omnimodels,pods -n {NAMESPACE}\n"
        f"  kubectl port-forward -n {NAMESPACE} service/{MODEL}-frontend 8000:80\n"
        f"  make cluster-down"
    )


if __name__ == "__main__":
    sys.exit(main())
