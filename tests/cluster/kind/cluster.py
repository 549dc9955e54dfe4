"""The kind cluster as tests and the command line see it: up, down, images, volumes, and what runs inside its nodes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.audit import write_policy
from tests.cluster.commands import run, run_logged
from tests.cluster.errors import ClusterError, CommandFailed
from tests.cluster.kind import config, volumes
from tests.cluster.kind.backend import Backend, OwnBackend, PublishedBackend, choose
from tests.cluster.programs import Programs, exclusive
from tests.cluster.recipes import NODE, SERVERS
from tests.cluster.settings import Settings
from tests.cluster.steps import Steps

READY_TIMEOUT_S = 300


@dataclass(frozen=True)
class KindCluster:
    """`up` and `down` may be called at any time, also after a run that was killed half-way."""

    settings: Settings
    steps: Steps

    # ---- what a client needs

    @property
    def kubeconfig(self) -> Path:
        return self.settings.kind / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        return config.audit_log(self.settings)

    @property
    def node_port_url(self) -> str:
        """Where a Service with node port 30080 answers on the host."""
        return f"http://127.0.0.1:{self.settings.kind_node_port}"

    @property
    def control_plane(self) -> str:
        return f"{self.settings.cluster}-control-plane"

    @property
    def worker(self) -> str:
        return f"{self.settings.cluster}-worker"

    @property
    def programs(self) -> Programs:
        return Programs(self.settings, SERVERS + NODE)

    @property
    def environment(self) -> dict[str, str]:
        """For kubectl, helm and the Kubernetes client."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return run([self.programs["kubectl"], *arguments], env=self.environment, stdin=stdin)

    def docker(self, *arguments: str | Path) -> str:
        return run(["docker", *arguments], env=self._backend.environment)

    def node_exec(self, node: str, *command: str) -> str:
        """Run a command as root inside a node, for tests that kill a container the hard way."""
        return self.docker("exec", node, *command)

    # ---- life

    def up(self) -> None:
        with exclusive(self._lock):
            self._require_folders()
            backend = choose(self.settings, self.steps) if self._made is None else self._backend
            was_up = backend.is_up()  # a dockerd that starts again also starts its old nodes again, more or less well
            image = backend.start()
            wanted = self._recipe(backend, image)
            if not (was_up and self._made == wanted and self._nodes_run(backend)):
                self._create(backend, image, wanted)
            backend.publish([self.settings.kind_api_port, self.settings.kind_node_port])
            with self.steps.step("every node Ready"):
                self.kubectl("wait", "--for=condition=Ready", "node", "--all", f"--timeout={READY_TIMEOUT_S}s")

    def down(self, *, wipe: bool = False) -> None:
        """Leave nothing running; `wipe` also gives the space back that loaded images take."""
        with exclusive(self._lock):
            backend = self._backend
            if backend.is_up() and self.programs["kind"].exists():
                with self.steps.step("delete the kind cluster"):
                    self._delete(backend)
            with self.steps.step("end what ran it"):
                backend.stop()
                shutil.rmtree(self.settings.kind, ignore_errors=True)
                if wipe and isinstance(backend, OwnBackend):
                    shutil.rmtree(backend.sandbox.data, ignore_errors=True)

    def make_node_image(self) -> str:
        """Have the node image of our own in the cache, and leave running what ran before."""
        with exclusive(self._lock):
            backend = OwnBackend(self.settings, self.steps)
            was_up = backend.is_up()
            image = backend.start()
            if not was_up:
                backend.stop()
            return image

    def is_up(self) -> bool:
        return "config" in (self._made or {}) and self._backend.is_up() and self._nodes_run(self._backend)

    def describe(self) -> str:
        """One line about what runs, for people."""
        if self.is_up():
            return f"up by backend {self._backend.name!r}; export KUBECONFIG={self.kubeconfig}"
        runs = self._backend.is_up() and self._backend.name == OwnBackend.name
        return "a dockerd of our own runs, but no whole cluster; cluster-up goes on" if runs else "nothing runs"

    # ---- content

    def load(self, images: Sequence[str]) -> None:
        """Load images into the worker: files that hold an OCI or Docker archive, or names that Docker knows."""
        for image in images:
            kind_of = "image-archive" if Path(image).is_file() else "docker-image"
            with self.steps.step(f"load {image}"):
                self._kind(self._backend, "load", kind_of, image, "--nodes", self.worker)

    def make_volumes(self, namespace: str) -> None:
        """Create the namespace if need be, and its claims `venv` and `models`, bound to volumes of its own."""
        self._create_if_absent(volumes.namespace_object(namespace))
        folders = volumes.folders(Path((self._made or {})["venv"]))
        for claim, path in folders.items():
            if self._phase("pv", volumes.volume_name(namespace, claim)) in ("Released", "Failed"):
                self.kubectl("delete", "pv", volumes.volume_name(namespace, claim))
            self._create_if_absent(volumes.volume(namespace, claim, path))
            self._create_if_absent(volumes.claim_object(namespace, claim))
        self.kubectl(
            *("-n", namespace, "wait", "--for=jsonpath={.status.phase}=Bound", "--timeout=30s"),
            *(f"pvc/{claim}" for claim in folders),
        )

    # ---- inside

    @property
    def _lock(self) -> Path:
        return self.settings.kind.with_name(f".lock-{self.settings.cluster}")

    @property
    def _record(self) -> Path:
        return self.settings.kind / "made.json"

    @property
    def _made(self) -> dict[str, Any] | None:
        """What the cluster is made from, or only its backend and image while it is being made."""
        try:
            content: dict[str, Any] = json.loads(self._record.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return content

    @property
    def _backend(self) -> Backend:
        """The backend that the cluster was made with; our own while there is no record, as it has most to clean."""
        made = self._made or {}
        if made.get("backend") == PublishedBackend.name:
            return PublishedBackend(made["image"])
        return OwnBackend(self.settings, self.steps)

    def _recipe(self, backend: Backend, image: str) -> dict[str, Any]:
        """A folder that was removed and made again is another folder: the node still shows the old one."""
        folders = {str(path): path.stat().st_ino for path in (self.settings.venv, self.settings.models)}
        return {
            "backend": backend.name,
            "image": image,
            "venv": str(self.settings.venv),
            "config": config.kind_config(self.settings),
            "folders": folders,
        }

    def _require_folders(self) -> None:
        self.settings.models.mkdir(parents=True, exist_ok=True)
        if not (self.settings.venv / "bin" / "python").exists():
            raise ClusterError(
                f"no Python environment at {self.settings.venv}; make it with `make install` or name one with --venv"
            )

    def _create(self, backend: Backend, image: str, wanted: dict[str, Any]) -> None:
        with self.steps.step(f"kind create cluster {self.settings.cluster!r}: a control plane and a worker"):
            self._write_files()
            self._record.write_text(json.dumps({"backend": backend.name, "image": image}))
            self._delete(backend)
            self._kind(
                backend,
                *("create", "cluster", "--image", image, "--config", str(self.settings.kind / "kind.json")),
                *("--kubeconfig", str(self.kubeconfig), "--wait", f"{READY_TIMEOUT_S}s"),
            )
            self._record.write_text(json.dumps(wanted, indent=2))

    def _write_files(self) -> None:
        audit = config.audit_log(self.settings)
        audit.parent.mkdir(parents=True, exist_ok=True)
        audit.unlink(missing_ok=True)
        write_policy(config.audit_policy(self.settings))
        (self.settings.kind / "kind.json").write_text(json.dumps(config.kind_config(self.settings), indent=2))

    def _delete(self, backend: Backend) -> None:
        self._kind(backend, "delete", "cluster", "--kubeconfig", str(self.kubeconfig))

    def _kind(self, backend: Backend, *arguments: str) -> None:
        command = [str(self.programs["kind"]), *arguments, "--name", self.settings.cluster]
        run_logged(command, self.settings.logs / f"kind-{arguments[0]}.log", env=backend.environment)

    def _nodes_run(self, backend: Backend) -> bool:
        try:
            names = [self.control_plane, self.worker]
            states = run(["docker", "inspect", "-f", "{{.State.Running}}", *names], env=backend.environment)
        except CommandFailed:
            return False
        return states.split() == ["true", "true"]

    def _create_if_absent(self, manifest: dict[str, Any]) -> None:
        try:
            self.kubectl("create", "-f", "-", stdin=json.dumps(manifest))
        except CommandFailed as refused:
            if "AlreadyExists" not in refused.output:
                raise

    def _phase(self, resource: str, name: str) -> str:
        return self.kubectl("get", resource, name, "--ignore-not-found", "-o", "jsonpath={.status.phase}")
