"""Starts tracing in a process, if its settings ask for it."""

from omni_runtime.tracing.settings import TracingSettings
from omni_runtime.tracing.spans import NOTHING, UNTRACED, Attributes, Tracing


class MissingTelemetryError(Exception):
    """Spans are asked for, and the libraries that write them are not installed."""


def start_tracing(settings: TracingSettings, service: str, instance: str, resource: Attributes = NOTHING) -> Tracing:
    """`service` is the kind of process, `instance` this one of them. Raises MissingTelemetryError."""
    if not settings.is_on:
        return UNTRACED
    try:
        from omni_runtime.tracing.recording import Recording
    except ModuleNotFoundError as missing:
        text = f"tracing needs {missing.name}; install it by: pip install 'omni-operator[telemetry]'"
        raise MissingTelemetryError(text) from missing
    return Recording(settings, service, instance, resource)
