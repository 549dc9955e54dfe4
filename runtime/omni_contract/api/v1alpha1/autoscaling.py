"""How many replicas there are, where the load decides."""

from typing import Annotated

from pydantic import Field, StringConstraints

from omni_contract.api.v1alpha1.base import ApiModel, ListMap, Quantity

Replicas = Annotated[int, Field(ge=1, le=1000)]
MetricName = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=r"^[a-zA-Z_:][-a-zA-Z0-9_:./]*$")]


class PodMetric(ApiModel):
    """A metric of the pods, as the cluster's adapter of the custom metrics API serves it."""

    name: MetricName = Field(description="Its name there, for example omni_worker_running.")
    average_value: Quantity = Field(description="What it shall be on average over the pods.")


class AutoscalingSpec(ApiModel):
    """Bounds and targets of an autoscaler.

    Without a target the operator makes no autoscaler and leaves the number of replicas to whoever scales the
    Deployment: `kubectl scale`, KEDA, or an autoscaler of the user's own.
    """

    min_replicas: Replicas = Field(1, description="Fewest replicas.")
    max_replicas: Replicas = Field(description="Most replicas.")
    cpu_utilization: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None,
        description="What shall be used of resources.cpu on average, in percent; the cluster needs metrics-server.",
    )
    pod_metrics: Annotated[tuple[PodMetric, ...], Field(max_length=8), ListMap(("name",))] = Field(
        (), description="Other targets; the one that asks for most replicas counts."
    )
    scale_down_stabilization_seconds: Annotated[int, Field(ge=0, le=3600)] = Field(
        300, description="How long fewer replicas must be enough before any leaves."
    )

    @property
    def has_target(self) -> bool:
        return self.cpu_utilization is not None or bool(self.pod_metrics)
