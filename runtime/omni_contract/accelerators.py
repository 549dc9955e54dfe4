"""Cluster facts about accelerators: vendor profiles and pools, as the chart's values hold them.

A profile says how a vendor's devices are used (image, resource, environment); a pool says where they are (selector,
tolerations) and may override its profile. Local mode builds a catalog of its own. A pool without an image may exist;
a model that asks for it is refused by `resolve`.
"""

from enum import StrEnum
from typing import Annotated, Literal, Self

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


Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Image = Annotated[str, Field(pattern=r"^\S+$", max_length=512)]
Resource = Annotated[str, Field(pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$")]
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
AbsolutePath = Annotated[str, Field(pattern=r"^/[^\s:]+$")]


class Toleration(ConfigModel):
    """As in a pod's spec."""

    key: str | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class ClaimMount(ConfigModel):
    """An existing PersistentVolumeClaim of the model's namespace, mounted read-only by every stage pod."""

    claim: Annotated[str, Field(pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$")]
    mount_path: AbsolutePath


class VendorProfile(ConfigModel):
    """How pods use one vendor's devices."""

    vendor: Vendor
    image: Image | None = Field(None, description="Runtime image; a profile without one is refused for use.")
    resource: Resource | None = Field(None, description="Extended resource name; none for cpu.")
    command: tuple[str, ...] = Field(
        (), description="Replaces the image's entry point, for example a mounted interpreter."
    )
    env: dict[EnvironmentName, str] = Field({}, description="Set in every stage container.")
    mounts: tuple[ClaimMount, ...] = Field((), description="Mounted in every stage container.")
    visible_devices_variable: EnvironmentName | None = Field(
        None, description="Environment name that limits devices, set per process."
    )
    startup_factor: Annotated[float, Field(ge=1)] = Field(
        1.0, description="By how much a stage's start-up takes longer than its own timeout says."
    )


class Pool(ConfigModel):
    """A set of nodes with one kind of accelerator. What it sets wins over its profile."""

    profile: Name = Field(description="Name of the vendor profile.")
    resource: Resource | None = Field(None, description="Extended resource name, for example of a MIG slice.")
    node_selector: dict[str, str] = Field({}, description="Labels of the nodes.")
    tolerations: tuple[Toleration, ...] = Field((), description="Of the nodes' taints.")
    runtime_class_name: Name | None = Field(None, description="RuntimeClass, where the container runtime needs one.")
    image: Image | None = Field(None, description="Runtime image.")
    env: dict[EnvironmentName, str] = Field({}, description="Added to the profile's, name by name.")
    mounts: tuple[ClaimMount, ...] = Field((), description="Added to the profile's, path by path.")


class AcceleratorCatalog(ConfigModel):
    """All profiles and pools of a cluster, by name."""

    profiles: dict[Name, VendorProfile] = Field(description="How to use each vendor's devices.")
    pools: dict[Name, Pool] = Field(description="Where devices are; stages name one of these.")
    allow_fake_engine: bool = Field(False, description="Whether stages may run the fake engine, for tests.")
    stages_share_memory: bool = Field(False, description="Whether all stages run on one host, as in local mode.")

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
