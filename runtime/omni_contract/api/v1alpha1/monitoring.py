"""What the model's processes tell of what they do: log lines, traces, profiles."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from omni_contract.api.v1alpha1.base import ApiModel, Quantity

LogLevel = Literal["debug", "info", "warning", "error"]
Collector = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/:]+:[0-9]{1,5}$", min_length=1, max_length=300)]


class TracingSpec(ApiModel):
    """Where spans go; a request is one trace over the frontend and every stage."""

    otlp_endpoint: Collector = Field(
        description='An OTLP/gRPC collector, for example "http://otel-collector.observability:4317".'
    )
    ratio: Annotated[float, Field(ge=0, le=1)] = Field(
        1.0, description="Share of requests to trace; a caller's own traceparent decides for its request."
    )


class MonitoringSpec(ApiModel):
    """What the model's processes tell of what they do."""

    log_level: LogLevel = Field(
        "info", description="From which level on the frontend and the stages log, where they name none of their own."
    )
    tracing: TracingSpec | None = Field(
        None, description="Send traces to a collector; unset, none are made. `omni serve` has --trace-dir instead."
    )


class ProfilesSpec(ApiModel):
    """The folder for the profiles that a replica records; it lives as long as its pod."""

    size: Quantity = Field(
        "1Gi", description="Disk of the node for the folder; a pod that writes more is evicted by the kubelet."
    )
