"""The `cluster` blocks of the documents, typed one after the other as a reader does, on a cluster without the chart.

Added to what is typed: the images of this checkout for `helm install`, and a free port.
"""

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.cluster_e2e import models
from tests.cluster_e2e.conftest import Cluster
from tests.cluster_e2e.installation import VALUES, references
from tests.layout.docs import Command, all_blocks, is_as_shown
from tests.layout.source import CHECKOUT
from tests.support.model_processes import free_ports

NAMESPACE = "reader"
MODEL = "tiny-qwen-image"
DOCUMENTED_PORT = "8000"
LONGEST_COMMAND_S = 600


@dataclass(frozen=True)
class Reader:
    """A person in the checkout, whose kubectl looks at a namespace that has the claims of the example."""

    environment: dict[str, str]
    values: Path

    def types(self, command: Command) -> None:
        if command.words[:2] == ["kubectl", "port-forward"]:
            self._forwards(command)
            return
        line = f"{command.line} --values {VALUES} --values {self.values}" if is_install(command) else command.line
        done = self._started(line)
        printed, _ = done.communicate(timeout=LONGEST_COMMAND_S)
        assert done.returncode == 0, f"{line}\n{printed}"
        assert is_as_shown(printed, command.printed), f"{line}\n{printed}"

    def _forwards(self, command: Command) -> None:
        """Stays up; what it forwards to answers."""
        (port,) = map(str, free_ports(1))
        words = [word.replace(f"{DOCUMENTED_PORT}:", f"{port}:") for word in command.words]
        process = self._started(f"exec {' '.join(words)}")
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert is_as_shown(first, command.printed.replace(f":{DOCUMENTED_PORT}", f":{port}")), first
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=30) as answer:
                assert [model["id"] for model in json.load(answer)["data"]] == [MODEL]
        finally:
            process.terminate()
            process.communicate()

    def _started(self, line: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", line],
            cwd=CHECKOUT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def is_install(command: Command) -> bool:
    return command.words[:2] == ["helm", "install"]


@pytest.fixture
def reader(cluster: Cluster, helm: Path, tmp_path: Path) -> Iterator[Reader]:
    cluster.kind.make_volumes(NAMESPACE)
    models.delete(cluster.kind, NAMESPACE, MODEL)
    kubeconfig = yaml.safe_load(cluster.kind.kubeconfig.read_text())
    for context in kubeconfig["contexts"]:
        context["context"]["namespace"] = NAMESPACE
    own = tmp_path / "kubeconfig"
    own.write_text(yaml.safe_dump(kubeconfig))
    values = tmp_path / "images.yaml"
    values.write_text(yaml.safe_dump(references(cluster.images)))
    programs = (cluster.kind.programs["kubectl"], helm)
    path = ":".join([*(str(program.parent) for program in programs), os.environ["PATH"]])
    cluster.installation.helm.uninstall()
    try:
        yield Reader({**os.environ, "KUBECONFIG": str(own), "PATH": path}, values)
    finally:
        models.delete(cluster.kind, NAMESPACE, MODEL)
        cluster.installation.install(cluster.images)


def test_every_command_does_what_the_documents_say(reader: Reader) -> None:
    commands = [command for block in all_blocks() if block.needs == "cluster" for command in block.commands]
    assert any(map(is_install, commands))
    for command in commands:
        reader.types(command)
