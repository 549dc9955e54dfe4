"""What the operator and the frontends wrote, as the API server's audit log has it."""

from collections.abc import Iterable
from pathlib import Path

from tests.cluster.audit import Request, requests
from tests.support.helm import NAMESPACE

WRITES = {"create", "update", "patch", "delete", "deletecollection"}


def writes_of_ours(audit_log: Path, namespaces: Iterable[str]) -> list[Request]:
    """By the operator's account, and by the frontends' accounts in the models' namespaces. Leases do not count.

    Nor does what is written in other namespaces, where another test may just be cleaning up.
    """
    places = {NAMESPACE, *namespaces}
    prefixes = tuple(f"system:serviceaccount:{namespace}:" for namespace in places)
    return [
        request
        for request in requests(audit_log)
        if request.user.startswith(prefixes)
        and request.verb in WRITES
        and request.namespace in places
        and request.resource != "leases"
    ]
