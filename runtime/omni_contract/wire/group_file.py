"""The group file: which workers share a pod, as JSON (a ConfigMap in a cluster, beside their stage files)."""

from pydantic import Field

from omni_contract.accelerators import ConfigModel


class GroupMember(ConfigModel):
    """A worker of the group."""

    name: str = Field(description="The stage's name.")
    arguments: tuple[str, ...] = Field(description="Its command line; the pod's address and name it takes by itself.")
    environment: dict[str, str] = Field({}, description="On top of the container's.")
    health: str = Field(description="HOST:PORT at which it answers grpc.health.v1 in the clear.")
    drain_timeout_s: int


class GroupFile(ConfigModel):
    members: tuple[GroupMember, ...]
