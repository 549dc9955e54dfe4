"""Kubernetes' strategic merge for what a user's pod template may hold: maps by key, list-maps by their merge key."""

from collections.abc import Iterable
from typing import Any

from omni_operator.objects import Manifest

MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "ownerReferences": "uid",
}
"""Lists that are maps in disguise. Other lists are values of their own."""

UNIONS = frozenset({"tolerations"})
"""Lists of which neither side may lose an entry."""


def merge(under: Manifest, over: Manifest) -> Manifest:
    """`over` wins wherever both say something; what only `under` says is kept."""
    return {key: _merged(key, under, over) for key in (*over, *(key for key in under if key not in over))}


def _merged(key: str, under: Manifest, over: Manifest) -> Any:
    if key not in over or key not in under:
        return over[key] if key in over else under[key]
    lower, upper = under[key], over[key]
    if isinstance(lower, dict) and isinstance(upper, dict):
        return merge(lower, upper)
    if isinstance(lower, list) and isinstance(upper, list):
        return _merged_list(key, lower, upper)
    return upper


def _merged_list(key: str, under: list[Any], over: list[Any]) -> list[Any]:
    if key in UNIONS:
        return [*over, *(item for item in under if item not in over)]
    merge_key = MERGE_KEYS.get(key)
    if merge_key is None:
        return over
    return list(_merged_items(merge_key, under, over))


def _merged_items(merge_key: str, under: list[Manifest], over: list[Manifest]) -> Iterable[Manifest]:
    lower = {item.get(merge_key): item for item in under}
    upper = {item.get(merge_key) for item in over}
    yield from (merge(lower[item.get(merge_key)], item) if item.get(merge_key) in lower else item for item in over)
    yield from (item for item in under if item.get(merge_key) not in upper)
