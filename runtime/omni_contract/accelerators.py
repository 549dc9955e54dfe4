"""Cluster facts about accelerators: vendor profiles and pools, as the chart's values hold them.

A profile says how a vendor's devices are used (image, resource, environment); a pool says where they are (selector,
tolerations) and may override its profile. Local mode builds a catalog of its own. A pool without an image may exist;
a model that asks for it is refused by `resolve`.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel


class ConfigModel(BaseModel):
    """Base of documents that we write and read ourselves: camelCase outside, unknown keys refused, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class Vendor(StrEnum):
    NVIDIA = "nvidia"
    ROCM = "rocm"
    ASCEND = "ascend"
    XPU = "xpu"
    CPU = "cpu"

    @property
    def has_devices(self) -> bool:
        """Whether pods ask for devices of this vendor; CPU stages ask for none."""
        return self is not Vendor.CPU


class Toleration(ConfigModel):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class ClaimMount(ConfigModel):
    """An existing PersistentVolumeClaim of the model's namespace, mounted read-only by every stage pod."""

    claim: str
    mount_path: str


class VendorProfile(ConfigModel):
    """How pods use one vendor's devices."""

    vendor: Vendor
    image: str | None = Field(None, description="Runtime image; a profile without one is refused for use.")
    resource: str | None = Field(None, description="Extended resource name; none for cpu.")
    command: tuple[str, ...] = Field(
        (), description="Replaces the image's entry point, for example a mounted interpreter."
    )
    env: dict[str, str] = Field(default_factory=dict)
    mounts: tuple[ClaimMount, ...] = ()
    visible_devices_variable: str | None = Field(
        None, description="Environment name that limits devices, set per process."
    )
    startup_factor: Annotated[float, Field(ge=1)] = 1.0


class Pool(ConfigModel):
    """A set of nodes with one kind of accelerator."""

    profile: str = Field(description="Name of the vendor profile.")
    resource: str | None = None
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    runtime_class_name: str | None = None
    image: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    mounts: tuple[ClaimMount, ...] = ()


class AcceleratorCatalog(ConfigModel):
    """All profiles and pools of a cluster, by name."""

    profiles: dict[str, VendorProfile]
    pools: dict[str, Pool]
    allow_fake_engine: bool = False

    @model_validator(mode="after")
    def _pools_name_known_profiles(self) -> Self:
        known = ", ".join(sorted(self.profiles)) or "none"
        for name, pool in self.pools.items():
            if pool.profile not in self.profiles:
                raise ValueError(
                    f'pool "{name}" names profile "{pool.profile}", which does not exist; there are: {known}'
                )
            self._check_resource(name, pool)
        return self

    def _check_resource(self, name: str, pool: Pool) -> None:
        profile = self.profiles[pool.profile]
        resource = pool.resource or profile.resource
        if profile.vendor.has_devices and resource is None:
            raise ValueError(f'pool "{name}": vendor "{profile.vendor}" needs a resource, for example "nvidia.com/gpu"')
        if resource is not None and not profile.vendor.has_devices:
            raise ValueError(f'pool "{name}": vendor "cpu" has no devices, but its resource is "{resource}"; remove it')
