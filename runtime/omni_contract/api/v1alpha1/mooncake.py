"""Settings of the two connectors over Mooncake: its store, and its transfer engine without one."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from omni_contract.api.v1alpha1.base import ApiModel, Quantity

HostName = Annotated[str, Field(pattern=r"^[^\s:/]+$", max_length=253)]
HostAndPort = Annotated[str, Field(pattern=r"^[^\s:/]+:[0-9]{1,5}$", max_length=259)]
PORTS_PER_STAGE = 128
"""Every worker takes two, and those of a worker that ended stay closed for a minute."""
MAX_STAGES = 16
LAST_PORT = 32_767
"""The library takes no port above: the next ones are what the kernel gives to outgoing connections."""


class MooncakeTransport(ApiModel):
    """What both connectors need to move bytes."""

    protocol: Literal["tcp", "rdma"] = Field("tcp", description="How the bytes travel.")
    host: HostName | None = Field(
        None, description="Address at which the others reach this worker; left out, the one of the worker itself."
    )
    device_name: Annotated[str, Field(pattern=r"^[^\s]*$", max_length=256)] = Field(
        "", description="RDMA devices, separated by commas; left out, the library finds them."
    )
    first_port: Annotated[int, Field(ge=1024, le=LAST_PORT - MAX_STAGES * PORTS_PER_STAGE + 1)] | None = Field(
        None,
        description=f"First of the ports to listen on: {PORTS_PER_STAGE} for each stage, in the order of the stages, "
        "of which a worker takes two free ones. Left out, the library's own range, 15000 to 17000.",
    )
    wait_seconds: Annotated[float, Field(ge=0, le=3600)] = Field(
        10.0, description="How long a payload waits for room while the memory is full, before its request fails."
    )
    checksum: bool = Field(False, description="Whether the consumer checks that payloads are undamaged.")


class MooncakeTransferEngineConnector(MooncakeTransport):
    """Mooncake's transfer engine: the consumer reads from the producer's registered memory."""

    kind: ClassVar[Literal["mooncakeTransferEngine"]] = "mooncakeTransferEngine"

    pool_size: Quantity = Field(
        "1Gi", description="Registered memory of each worker, for the payloads that it has put or got."
    )
    pool_device: Literal["cpu", "cuda"] = Field(
        "cpu",
        description="Where that memory is. On a GPU (cuda) it needs one in every stage, and Mooncake's build for CUDA.",
    )


class MooncakeStoreConnector(MooncakeTransport):
    """Mooncake's store: payloads lie in the segments that workers lend to it, under the books of a master."""

    kind: ClassVar[Literal["mooncakeStore"]] = "mooncakeStore"

    managed: bool = Field(False, description="Whether a master is started with the model; else name one (master).")
    master: HostAndPort | None = Field(None, description="HOST:PORT of a mooncake_master that runs already.")
    metadata_server: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        "P2PHANDSHAKE",
        description="Where workers find each other: by themselves, or a server, http://HOST:PORT/metadata.",
    )
    segment_size: Quantity = Field("512Mi", description="Memory that each worker lends to the store for its payloads.")
    buffer_size: Quantity = Field(
        "512Mi", description="Registered memory of each worker, for the payloads on their way in and out."
    )
