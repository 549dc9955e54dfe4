"""The command line of each program of a control plane, as pure functions of its ports and files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.cluster.certificates import Pair
from tests.cluster.pools import FAKE_NODE_ANNOTATION

SERVICE_RANGE = "10.96.0.0/16"
SERVER_HOSTS = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "10.96.0.1",
)
ISSUER = "https://kubernetes.default.svc.cluster.local"
# fast: a pod is Ready at once and gone at once; the last one only acts on nodes that a test labels for it
KWOK_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
    "node/chaos/node-not-ready.yaml",
)


@dataclass(frozen=True)
class Ports:
    """Consecutive loopback ports from `base`."""

    base: int

    @property
    def api(self) -> int:
        return self.base

    @property
    def etcd(self) -> int:
        return self.base + 1

    @property
    def etcd_peer(self) -> int:
        return self.base + 2

    @property
    def controllers(self) -> int:
        return self.base + 3

    @property
    def scheduler(self) -> int:
        return self.base + 4

    def all(self) -> range:
        return range(self.base, self.base + 5)


@dataclass(frozen=True)
class Files:
    """What the programs read and write; all below the plane's state folder."""

    authority: Pair
    server: Pair
    etcd_client: Pair
    tokens: Pair
    etcd_data: Path
    audit_policy: Path
    audit_log: Path
    kubeconfigs: Path


def etcd(ports: Ports, files: Files) -> list[str]:
    """No fsync: what a test loses in a power cut it would not have kept either."""
    client, peer = f"https://127.0.0.1:{ports.etcd}", f"https://127.0.0.1:{ports.etcd_peer}"
    return [
        f"--data-dir={files.etcd_data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        *(flag for side in ("", "peer-") for flag in _etcd_tls(side, files)),
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _etcd_tls(side: str, files: Files) -> list[str]:
    return [
        f"--{side}cert-file={files.server.certificate}",
        f"--{side}key-file={files.server.key}",
        f"--{side}trusted-ca-file={files.authority.certificate}",
        f"--{side}client-cert-auth",
    ]


def apiserver(ports: Ports, files: Files) -> list[str]:
    """No endpoint reconciler: it would publish a loopback address, which an Endpoints object may not hold."""
    return [
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--secure-port={ports.api}",
        f"--etcd-servers=https://127.0.0.1:{ports.etcd}",
        f"--etcd-cafile={files.authority.certificate}",
        f"--etcd-certfile={files.etcd_client.certificate}",
        f"--etcd-keyfile={files.etcd_client.key}",
        f"--tls-cert-file={files.server.certificate}",
        f"--tls-private-key-file={files.server.key}",
        f"--client-ca-file={files.authority.certificate}",
        f"--service-account-key-file={files.tokens.certificate}",
        f"--service-account-signing-key-file={files.tokens.key}",
        f"--service-account-issuer={ISSUER}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction,PodSecurity",
        "--allow-privileged=true",
        "--profiling=false",
        f"--audit-policy-file={files.audit_policy}",
        f"--audit-log-path={files.audit_log}",
        "--audit-log-format=json",
        "--audit-log-mode=blocking",
        "--audit-log-maxsize=4096",
    ]


def controllers(ports: Ports, files: Files) -> list[str]:
    return [
        *_component("kube-controller-manager", ports.controllers, files),
        f"--service-account-private-key-file={files.tokens.key}",
        f"--root-ca-file={files.authority.certificate}",
        f"--cluster-signing-cert-file={files.authority.certificate}",
        f"--cluster-signing-key-file={files.authority.key}",
        "--use-service-account-credentials=true",
        "--horizontal-pod-autoscaler-sync-period=2s",
    ]


def scheduler(ports: Ports, files: Files) -> list[str]:
    return _component("kube-scheduler", ports.scheduler, files)


def kwok(files: Files, stages: Path) -> list[str]:
    """KWOK acts only on nodes that carry the annotation, and opens no port."""
    return [
        f"--kubeconfig={files.kubeconfigs / 'admin.kubeconfig'}",
        f"--manage-nodes-with-annotation-selector={FAKE_NODE_ANNOTATION}=fake",
        "--cidr=10.250.0.0/16",
        "--node-ip=127.0.0.1",
        "--node-lease-duration-seconds=40",
        *(f"--config={stages / stage}" for stage in KWOK_STAGES),
    ]


def _component(program: str, port: int, files: Files) -> list[str]:
    """What the API server's own clients share. Their default of 20 requests a second is minutes behind with a thousand
    objects.
    """
    kubeconfig = files.kubeconfigs / f"{program}.kubeconfig"
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={files.server.certificate}",
        f"--tls-private-key-file={files.server.key}",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--kube-api-qps=300",
        "--kube-api-burst=600",
    ]
