"""Models in the test cluster: applied, waited for, looked at."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.kind.cluster import KindCluster
from tests.support.waiting import looks

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXAMPLE = EXAMPLES / "tiny-qwen-image.yaml"
GROUP = "serving.omnimodel.dev"
READY_TIMEOUT_S = 300
POLL_S = 0.5

Manifest = dict[str, Any]


def example(name: str = EXAMPLE.name) -> Manifest:
    manifest: Manifest = yaml.safe_load((EXAMPLES / name).read_text())
    return manifest


def apply(cluster: KindCluster, namespace: str, manifest: Manifest) -> None:
    cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=yaml.dump(manifest))


def delete(cluster: KindCluster, namespace: str, name: str) -> None:
    """Together with its pods, if there is such a model. Upgrades leave a model's pods as they are."""
    options = ("--ignore-not-found", "--cascade=foreground", "--timeout=120s")
    cluster.kubectl("delete", "-n", namespace, "omnimodel", name, *options)


def get(cluster: KindCluster, namespace: str, *what: str) -> Manifest:
    found: Manifest = json.loads(cluster.kubectl("get", "-n", namespace, *what, "-o", "json"))
    return found


def pods(cluster: KindCluster, namespace: str, model: str, component: str = "") -> list[Manifest]:
    """The model's pods that are not on their way out."""
    labels = f"{GROUP}/model={model}" + (f",{GROUP}/component={component}" if component else "")
    items: list[Manifest] = get(cluster, namespace, "pods", "-l", labels)["items"]
    return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]


def wait_ready(
    cluster: KindCluster, namespace: str, name: str, report: Callable[[str], None] = lambda line: None
) -> None:
    """Until the condition Ready is true for what was applied last; each change on the way is reported."""
    last = ""
    for model in looks(lambda: get(cluster, namespace, "omnimodel", name), READY_TIMEOUT_S, POLL_S):
        line = progress(model)
        if line != last:
            report(line)
        if is_ready(model):
            return
        last = line
    raise AssertionError(f"{name} is not ready after {READY_TIMEOUT_S} s: {last}")


def is_ready(model: Manifest) -> bool:
    generation = model["metadata"]["generation"]
    conditions = model.get("status", {}).get("conditions", [])
    return any(
        one["type"] == "Ready" and one["status"] == "True" and one["observedGeneration"] == generation
        for one in conditions
    )


def progress(model: Manifest) -> str:
    """The model's state in a line: phase, ready stages, and what each of the others waits for."""
    status = model.get("status", {})
    waits = [f"{stage['name']}: {stage['message']}" for stage in status.get("stages", []) if stage.get("message")]
    return "; ".join([f"{status.get('phase', 'Unseen')} {status.get('stagesReady', '')}".strip(), *waits])
