"""What the end of a container says: the meaning of its exit code, the last sentence of its log, and what to do."""

import json
import signal
from collections.abc import Mapping

from omni_contract.wire.exit_codes import MEANINGS, ExitCode
from omni_operator.objects import Manifest

MORE_MEMORY = "give the stage more memory (resources.memory) or a smaller shm.size"

HINTS: Mapping[int, str] = {
    ExitCode.MISCONFIGURED: "correct what it names; if it is a device, package or family, the pool's image lacks it",
    ExitCode.LOAD_FAILED: "check that model.source is the folder of a checkpoint of this family",
    ExitCode.LISTEN_FAILED: "on the host's network another process has that port; move it, or the stage",
    ExitCode.OUT_OF_MEMORY: "give the stage more memory (resources.memory), or a pool with larger devices",
    ExitCode.LOAD_TIMED_OUT: "raise startupTimeoutSeconds, or put the checkpoint on faster storage",
    ExitCode.DRAIN_TIMED_OUT: "raise drain.timeoutSeconds if running requests are to finish",
}
"""By exit codes of our own processes; any other is explained by the log."""

SIGNALLED = 128
"""A shell's, and tini's, way to say that a signal ended a process: this plus its number."""


def describe_end(ended: Manifest) -> str:
    """`ended` is a container's terminated state, with the end of its log as its message."""
    if ended.get("reason") == "OOMKilled":
        return "OOMKilled: the container used more memory than its limit"
    code: int = ended.get("exitCode", 0)
    said = _last_sentence(ended.get("message") or "") or ended.get("reason") or "no reason given"
    return f"exited with status {code}{_meaning(code)}: {said}"


def hint_about(ended: Manifest, otherwise: str) -> str:
    if ended.get("reason") == "OOMKilled":
        return MORE_MEMORY
    return HINTS.get(ended.get("exitCode", 0), otherwise)


def _meaning(code: int) -> str:
    if code in MEANINGS:
        return f" ({MEANINGS[code]})"
    known = {number.value: number.name for number in signal.Signals}
    return f" (killed by {known[code - SIGNALLED]})" if code - SIGNALLED in known else ""


def _last_sentence(log: str) -> str:
    """Processes in pods log JSON; what a library prints as it dies is plain text."""
    line = next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "")
    try:
        said = json.loads(line)
    except ValueError:
        return line
    return str(said.get("message", line)) if isinstance(said, dict) else line
