"""Whether an object on the server still says what we ask for; what others added, and spelling, do not count."""

from typing import Any

from omni_operator import labels, quantity
from omni_operator.merge import MERGE_KEYS
from omni_operator.objects import Manifest, annotations_of


def differs(desired: Manifest, live: Manifest) -> bool:
    """True if a value of ours is missing or changed there, or if we no longer ask for something that we once did."""
    asked, applied = annotations_of(desired).get(labels.APPLIED), annotations_of(live).get(labels.APPLIED)
    return asked != applied or not _covers(live, desired, "")


def _covers(live: Any, desired: Any, key: str) -> bool:
    if live == desired:
        return True
    if isinstance(desired, dict) and isinstance(live, dict):
        return all(_covers(live.get(name), value, name) for name, value in desired.items())
    if isinstance(desired, list) and isinstance(live, list):
        return _covers_list(live, desired, MERGE_KEYS.get(key))
    return _same_quantity(live, desired) or (live is None and desired in ({}, []))


def _covers_list(live: list[Any], desired: list[Any], merge_key: str | None) -> bool:
    """A list-map may have gained items, such as an injected container; other lists are ours as a whole."""
    if merge_key is None:
        return len(live) == len(desired) and all(map(_covers, live, desired, [""] * len(desired)))
    by_key = {item.get(merge_key): item for item in live}
    return all(_covers(by_key.get(item.get(merge_key)), item, "") for item in desired)


def _same_quantity(live: Any, desired: Any) -> bool:
    """The API server keeps "0.5" as "500m"."""
    if not isinstance(live, str) or not isinstance(desired, str):
        return False
    amount = quantity.amount(desired)
    return amount is not None and amount == quantity.amount(live)
