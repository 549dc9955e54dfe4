"""What can be tuned about the orchestrator; one frozen object, made in the frontend's `command.py`."""

from dataclasses import dataclass

from omni_runtime.orchestrator.routing import Choose, choose
from omni_runtime.tracing.spans import UNTRACED, Tracing
from omni_runtime.transport.pipe import LARGEST_INPUT_BYTES
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport


@dataclass(frozen=True)
class OrchestratorSettings:
    """`frontend_id` names this process to the workers, for their logs and metrics."""

    frontend_id: str
    connect_timeout_s: float = 5.0
    reconnect_first_s: float = 0.05
    reconnect_most_s: float = 1.0
    keepalive_s: float = 0.5
    """So long a silent worker is left alone before it is pinged. Not below what workers allow, or they hang up."""
    outbox_messages: int = 20_000
    batch_bytes: int = 1 << 20
    partial_ready_s: float = 30.0
    """How long a new frontend that could serve some outputs waits for the stages of the others."""
    largest_input_bytes: int = LARGEST_INPUT_BYTES
    """Of one request, its media decoded; not above what workers take."""
    largest_output_bytes: int = 1 << 30
    tracing: Tracing = UNTRACED
    choose: Choose = choose
    """Which replica serves a stage of a request."""
    transport: Transport = PLAIN
    is_measured: bool = False
    """Workers tell for each request what only they know, for statistics."""
