"""Creates the pools' fake nodes in a running control plane and says when pods can be placed on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.cluster.pools import Pool, nodes
from tests.cluster.rest import CallRefused, Rest

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def create(rest: Rest, pools: Sequence[Pool]) -> None:
    for node in nodes(tuple(pools)):
        with _tolerate(409):
            rest.post("/api/v1/nodes", node)


def forget_leases(rest: Rest, pools: Sequence[Pool]) -> None:
    """A new KWOK waits 40 s for leases that the one before it still holds, so they are deleted first."""
    for pool in pools:
        for name in pool.node_names():
            with _tolerate(404):
                rest.delete(f"{LEASES}/{name}")


def are_ready(rest: Rest, pools: Sequence[Pool]) -> bool:
    """Whether each node of the pools is Ready and a pod of the namespace `default` would be admitted."""
    wanted = {name for pool in pools for name in pool.node_names()}
    ready = {node["metadata"]["name"] for node in rest.get("/api/v1/nodes")["items"] if _is_ready(node)}
    return wanted <= ready and has_default_account(rest)


def has_default_account(rest: Rest) -> bool:
    """Whether the controllers have made the service account that every pod without another one runs as."""
    accounts = rest.get("/api/v1/namespaces/default/serviceaccounts")["items"]
    return any(account["metadata"]["name"] == "default" for account in accounts)


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    tainted = any(t["key"].startswith("node.kubernetes.io/") for t in node["spec"].get("taints", []))
    return not tainted and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


@contextmanager
def _tolerate(status: int) -> Iterator[None]:
    try:
        yield
    except CallRefused as refused:
        if refused.status != status:
            raise
