"""What a failure at a stage means for the request: which error it is, and whether another replica may mend it."""

from collections.abc import Mapping

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.orchestrator.pool import StagePool
from omni_runtime.orchestrator.routing import ReplicaInfo


def failure_of(failed: wire.Failed) -> OmniError:
    """The error that a worker reported; a code that this version does not know is an internal error."""
    known = failed.code in ErrorCode.__members__.values()
    code = ErrorCode(failed.code) if known else ErrorCode.INTERNAL
    return OmniError(code, failed.message, failed.param or None)


def bounces(error: OmniError) -> bool:
    """True if the worker did not take the request at all, so that it simply goes to another."""
    return error.code in (ErrorCode.OVERLOADED, ErrorCode.STAGE_UNAVAILABLE)


def is_mendable(error: OmniError, failed: wire.Failed) -> bool:
    """True if another replica may succeed. A cancel that we did not ask for is a worker that leaves."""
    return failed.retryable or error.code is ErrorCode.CANCELLED


def lost_replica(stage: str, replica: ReplicaInfo | None, reason: str) -> OmniError:
    name = replica.name if replica else "?"
    return OmniError(ErrorCode.STAGE_UNAVAILABLE, f'stage "{stage}": replica "{name}" was lost ({reason})')


def no_replica(stage: str, waited_s: float, pools: Mapping[str, StagePool]) -> OmniError:
    """Names the stages that nobody serves; if each has replicas, they do not agree on the contract of an edge."""
    empty = [f"{name} (asleep)" if pool.is_asleep else name for name, pool in pools.items() if not pool.routable]
    if empty:
        what = f"no replica of {', '.join(empty)} is ready"
    else:
        what = f'no replica of "{stage}" has the same edge contracts as the stages around it'
    return OmniError(ErrorCode.STAGE_UNAVAILABLE, f"{what}; waited {waited_s:g} s")
