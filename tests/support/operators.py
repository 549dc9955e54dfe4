"""Operators as processes beside the test, run against a control plane of plain processes."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.control import ControlPlane
from tests.cluster.processes import Background
from tests.support.helm import NAMESPACE, RELEASE, Helm, find
from tests.support.model_processes import free_ports
from tests.support.operator_models import CATALOG, laid_over

POOLS = laid_over(CATALOG["pools"], {"cpu": {"nodeSelector": {"pool": "cpu"}}})
"""Where the control plane's fake nodes are."""

RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia"},
    "handler": "nvidia",
}
"""Of the NVIDIA pool, as the vendor's installation makes it."""

VALUES: dict[str, Any] = {
    "images": {"runtime": {vendor: f"runtime-{vendor}:1" for vendor in ("cpu", "nvidia", "rocm", "ascend")}},
    "accelerators": {"allowFakeEngine": True, "pools": POOLS},
    "operator": {"log": {"format": "text"}},
}

PATIENT_LEASE = {"name": RELEASE, "durationSeconds": 120, "renewDeadlineSeconds": 90}
"""For tests that are not about the lease: a machine that is busy with other tests must not cost the leadership."""

RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


@dataclass(frozen=True)
class Installation:
    """What the chart puts into a cluster for the operator, without its pod: CRD, account, rights, configuration."""

    plane: ControlPlane
    settings: dict[str, Any]

    @classmethod
    def of(cls, plane: ControlPlane, chart: Helm) -> Installation:
        manifests = chart.render(VALUES)
        crd = [one for one in manifests if one["kind"] == "CustomResourceDefinition"]
        rights = [one for one in manifests if one["kind"] in RIGHTS]
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        plane.kubectl(
            "apply",
            "--server-side",
            "--force-conflicts",
            "-f",
            "-",
            stdin=yaml.safe_dump_all([namespace, RUNTIME_CLASS, *crd, *rights]),
        )
        plane.kubectl("wait", "--for=condition=Established", "crd/omnimodels.serving.omnimodel.dev", "--timeout=30s")
        config = find(manifests, "ConfigMap", f"{RELEASE}-config")
        return cls(plane, yaml.safe_load(config["data"]["config.yaml"]))

    def operator(self, folder: Path, identity: str = "operator-0", **changes: Any) -> Operator:
        """An operator that is not started yet; `changes` are laid over the settings that the chart made."""
        kubeconfig = self.plane.kubeconfig_for_service_account(NAMESPACE, RELEASE)
        return Operator(folder, identity, {**self.settings, **changes}, kubeconfig)

    def free_lease(self) -> None:
        """Takes it from an operator that was killed, so that the next one need not wait until it runs out."""
        self.plane.kubectl("delete", "lease", RELEASE, "-n", NAMESPACE, "--ignore-not-found")


@dataclass
class Operator:
    folder: Path
    identity: str
    settings: dict[str, Any]
    kubeconfig: Path

    @property
    def process(self) -> Background:
        return Background(self.folder, self.identity)

    @property
    def log(self) -> str:
        return self.process.log.read_text() if self.process.log.exists() else ""

    def start(self) -> Operator:
        self.folder.mkdir(parents=True, exist_ok=True)
        probe, metrics = free_ports(2)
        config = self.folder / f"{self.identity}.yaml"
        config.write_text(yaml.safe_dump({**self.settings, "probePort": probe, "metricsPort": metrics}))
        arguments = ["--config", config, "--namespace", NAMESPACE, "--identity", self.identity]
        self.process.start(
            [sys.executable, "-m", "omni_operator", "run", *arguments],
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            dies_with_parent=True,
        )
        return self

    def stop(self) -> None:
        """Like the end of a pod."""
        self.process.stop(grace_s=15)

    def kill(self) -> None:
        self.process.kill()

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        identity = self.process.identity
        assert identity is not None, f"{self.identity} does not run:\n{self.log}"
        os.kill(identity.pid, number)
