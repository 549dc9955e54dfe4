"""How many requests of a call run at once."""

from omni_runtime.orchestrator import Orchestrator


def most_in_flight(orchestrator: Orchestrator) -> int:
    """As many as the narrowest stage takes, for each stage, and once more to wait for it; no more than may wait."""
    slots = [sum(replica.max_in_flight for replica in stage.replicas) for stage in orchestrator.stages()]
    wanted = max(1, min(slots)) * (len(slots) + 1)
    return max(1, min(wanted, orchestrator.table.limits.max_queue_length))
