"""The model's OpenAI-compatible endpoint."""

from typing import Annotated, Literal

from pydantic import Field

from omni_contract.api.v1alpha1.base import ApiModel, Seconds


class SecretRef(ApiModel):
    name: Annotated[str, Field(min_length=1, max_length=253)]


class AuthSpec(ApiModel):
    """Who may call: a Secret whose values are API keys; without it the endpoint is open."""

    api_keys_secret_ref: SecretRef | None = None


class FrontendLimits(ApiModel):
    """Bounds on what one request may ask and on what waits."""

    max_body_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 1 << 20
    max_image_pixels: Annotated[int, Field(ge=256, le=1 << 28)] = 4_194_304
    max_steps: Annotated[int, Field(ge=1, le=10_000)] = 200
    max_prompt_characters: Annotated[int, Field(ge=1, le=10_000_000)] = 32_000
    max_queue_length: Annotated[int, Field(ge=0, le=1_000_000)] = 256
    queue_timeout_seconds: Seconds = 30
    request_timeout_seconds: Seconds = 600


class ServiceSpec(ApiModel):
    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    node_port: Annotated[int, Field(ge=30000, le=32767)] | None = None


class FrontendSpec(ApiModel):
    replicas: Annotated[int, Field(ge=1, le=100)] = 1
    service: ServiceSpec = ServiceSpec()
    auth: AuthSpec = AuthSpec()
    limits: FrontendLimits = FrontendLimits()
