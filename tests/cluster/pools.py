"""Fake nodes of the accelerator pools: labels, taints and resources as the vendors' own plug-ins set them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

FAKE_NODE_ANNOTATION = "kwok.x-k8s.io/node"
DEVICES_PER_NODE = 8


@dataclass(frozen=True)
class Pool:
    """Nodes of one kind; `resources` are the device counts of each, `taint` keeps pods without a toleration away."""

    name: str
    nodes: int
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: tuple[str, ...] = ()
    taint: str = ""
    architecture: str = "amd64"

    def node_names(self) -> list[str]:
        return [f"fake-{self.name}-{index}" for index in range(self.nodes)]


NVIDIA = Pool(
    "nvidia",
    2,
    labels={
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": "NVIDIA-H200",
        "nvidia.com/gpu.memory": "143771",
        "nvidia.com/gpu.count": "8",
    },
    resources=("nvidia.com/gpu",),
    taint="nvidia.com/gpu",
)
ROCM = Pool(
    "rocm",
    2,
    labels={"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"},
    resources=("amd.com/gpu",),
    taint="amd.com/gpu",
)
ASCEND = Pool(
    "ascend",
    2,
    labels={"accelerator": "huawei-Ascend910", "node.kubernetes.io/npu.chip.name": "910B3"},
    resources=("huawei.com/Ascend910",),
    taint="huawei.com/Ascend910",
    architecture="arm64",
)
CPU = Pool("cpu", 2)
POOLS = (NVIDIA, ROCM, ASCEND, CPU)


def nodes(pools: tuple[Pool, ...] = POOLS) -> Iterator[dict[str, Any]]:
    """The Node objects, ready to be created; KWOK keeps the capacity that a node is created with."""
    for pool in pools:
        for index, name in enumerate(pool.node_names()):
            yield _node(pool, name, zone=f"zone-{index % 3}")


def _node(pool: Pool, name: str, zone: str) -> dict[str, Any]:
    capacity = {"cpu": "96", "memory": "1Ti", "pods": "110", "ephemeral-storage": "1Ti"}
    capacity |= dict.fromkeys(pool.resources, str(DEVICES_PER_NODE))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {FAKE_NODE_ANNOTATION: "fake", "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": pool.architecture,
                "topology.kubernetes.io/zone": zone,
                "pool": pool.name,
                **pool.labels,
            },
        },
        "spec": {"taints": [{"key": pool.taint, "value": "present", "effect": "NoSchedule"}]} if pool.taint else {},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
