"""Addresses in an old file that lead nowhere from a pod, for which stages would wait in silence."""

import re

from omni_contract.api.problems import Path
from omni_contract.convert.sieve import Kept, Refused, Sieve, shown, text

SHARED = ("master", "metadata_server")
"""Keys with an address that every stage dials."""
OWN = re.compile(r"(127\.[0-9.]+|localhost|0\.0\.0\.0|\[::1?\])")
BLANK = re.compile(r"<[^>]*>")


def reachable(extra: Kept, path: Path, sieve: Sieve) -> Kept:
    """Without the addresses that lead nowhere."""
    lost = [key for key in SHARED if (address := text(extra, key)) and _leads_nowhere(address)]
    for key in lost:
        reason = f"{shown(extra[key])} leads each pod to itself or nowhere, and the stages would wait in silence"
        way_out = "name the host that all of them reach, or remove it, and a master is started with the model"
        sieve.refuse(Refused((*path, key), reason, way_out))
    return {key: value for key, value in extra.items() if key not in lost}


def is_own(address: object) -> bool:
    """Whether a process calls itself by that address, wherever it runs."""
    return address == "auto" or OWN.fullmatch(str(address)) is not None


def _leads_nowhere(address: str) -> bool:
    host = address.partition("://")[2] or address
    return BLANK.search(address) is not None or OWN.match(host) is not None
