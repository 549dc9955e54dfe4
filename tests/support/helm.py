"""The real Helm, for tests of the chart: renders it, and takes releases through their life on a test cluster."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.commands import run

CHART = Path(__file__).resolve().parents[2] / "charts" / "omni-operator"
RELEASE = "omni-operator"
NAMESPACE = "omni-system"

Manifest = dict[str, Any]
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Helm:
    program: Path
    kubeconfig: Path | None = None
    chart: Path = CHART

    def render(self, values: Values | None = None, *, release: str = RELEASE) -> list[Manifest]:
        """What `helm template` prints, as objects."""
        text = self._run("template", release, self.chart, "-n", NAMESPACE, values=values)
        return [manifest for manifest in yaml.safe_load_all(text) if manifest is not None]

    def lint(self, values: Values | None = None) -> str:
        return self._run("lint", "--strict", self.chart, values=values)

    def install(self, values: Values | None = None, *options: str) -> str:
        """Install or upgrade; returns what is printed, the notes with it."""
        command = ("upgrade", "--install", RELEASE, self.chart, "-n", NAMESPACE, "--create-namespace", *options)
        return self._run(*command, values=values)

    def notes(self) -> str:
        """What the chart tells the user who has installed it."""
        return self._run("get", "notes", RELEASE, "-n", NAMESPACE)

    def uninstall(self) -> str:
        return self._run("uninstall", RELEASE, "-n", NAMESPACE, "--wait")

    def _run(self, *words: str | Path, values: Values | None = None) -> str:
        env = {**os.environ, **({"KUBECONFIG": str(self.kubeconfig)} if self.kubeconfig else {})}
        options = ("--values", "-") if values else ()
        return run([self.program, *words, *options], env=env, stdin=json.dumps(values) if values else None)


def find(manifests: list[Manifest], kind: str, name: str = "") -> Manifest:
    """The one object of the kind, and of the name if there are several."""
    found = [one for one in manifests if one["kind"] == kind and name in ("", one["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} objects of kind {kind} {name}: {[one['metadata']['name'] for one in found]}"
    return found[0]
