"""The model's OpenAI-compatible endpoint."""

from typing import Annotated, Literal

from pydantic import Field

from omni_contract.api.v1alpha1.autoscaling import AutoscalingSpec
from omni_contract.api.v1alpha1.base import ApiModel, Seconds, SecretName
from omni_contract.api.v1alpha1.media import MediaSpec
from omni_contract.api.v1alpha1.monitoring import LogLevel


class SecretRef(ApiModel):
    """A Secret in the model's namespace."""

    name: SecretName = Field(description="Name of the Secret.")


class AuthSpec(ApiModel):
    """Who may call."""

    api_keys_secret_ref: SecretRef | None = Field(
        None, description="A Secret whose values are API keys, one each; without it the endpoint is open to anybody."
    )


class FrontendLimits(ApiModel):
    """Bounds on what one request may ask and on what waits."""

    max_body_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = Field(
        1 << 25, description="Largest request body, media in it included; a larger one is answered with 413."
    )
    max_image_pixels: Annotated[int, Field(ge=256, le=1 << 28)] = Field(
        4_194_304, description="Most pixels (width x height) of one image, read or made."
    )
    max_steps: Annotated[int, Field(ge=1, le=10_000)] = Field(
        200, description="Most denoising steps that a request may ask for."
    )
    max_prompt_characters: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        32_000, description="Longest prompt, in characters."
    )
    max_queue_length: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        256, description="Most requests that wait in one frontend; the next is answered with 429 and Retry-After."
    )
    queue_timeout_seconds: Seconds = Field(
        30, description="Longest time that a request waits for a free replica before it is answered with 503."
    )
    request_timeout_seconds: Seconds = Field(
        600, description="Longest time that a request may take in all before it is answered with 504."
    )


class ServiceSpec(ApiModel):
    """The frontend's Service."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        "ClusterIP", description="Who can reach the endpoint: the cluster, or others through a node or a load balancer."
    )
    node_port: Annotated[int, Field(ge=30000, le=32767)] | None = Field(
        None, description="Port on every node, with type NodePort; left out, the cluster chooses one."
    )


class FrontendSpec(ApiModel):
    """The processes that answer the model's HTTP requests."""

    replicas: Annotated[int, Field(ge=1, le=100)] = Field(1, description="Number of frontend replicas.")
    autoscaling: AutoscalingSpec | None = Field(
        None, description="The load says how many replicas there are; in place of replicas. In a cluster only."
    )
    service: ServiceSpec = Field(ServiceSpec(), description="The frontend's Service.")
    auth: AuthSpec = Field(AuthSpec(), description="Who may call.")
    log_level: LogLevel | None = Field(
        None, description="From which level on the frontend logs; left out, the model's."
    )
    log_stats: bool = Field(
        False, description="Log a table of what each request took, stage by stage and edge by edge."
    )
    admin_port: Annotated[int, Field(ge=1024, le=65535)] | None = Field(
        None,
        description="Port for control calls to all replicas of chosen stages, over plain HTTP, without authentication, "
        "on the pod's own loopback address: kubectl port-forward reaches it, other pods do not. Unset, there is none. "
        "In a cluster only.",
    )
    limits: FrontendLimits = Field(
        FrontendLimits(), description="Bounds on what one request may ask and on what waits."
    )
    media: MediaSpec = Field(MediaSpec(), description="Media that requests bring: from where, and how much.")
