"""Records the steps of vLLM's model runner with torch's profiler, in the process that runs the model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from omni_runtime.stepping.step_profile import StepProfile


class StepRecorder:
    """Stands in for the runner's own step for as long as it records; it ends itself after enough steps."""

    def __init__(self, runner: Any, trace: Path, max_steps: int) -> None:
        self._runner = runner
        self._execute: Callable[..., Any] = runner.execute_model
        self._profile = StepProfile(trace, max_steps, runner.device)
        self._profile.start()
        runner.execute_model = self

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if not self._profile.is_recording:
            return self._execute(*arguments, **named)
        with self._profile.turn("step"):
            return self._execute(*arguments, **named)

    def finished(self) -> int:
        """Writes the trace if it has not been; how many steps it has. Raises OSError if it could not be written."""
        self._profile.finish()
        self._runner.execute_model = self._execute
        return self._profile.result().steps
