"""Media that requests bring: from where, and how much."""

from typing import Annotated

from pydantic import Field

from omni_contract.api.v1alpha1.base import ApiModel, Seconds


class MediaSpec(ApiModel):
    """Images, sound and video of requests; what is left out is as the frontend has it."""

    allow_private_addresses: bool = Field(
        False,
        description="Fetch links also from private addresses, such as a store's in this cluster: whoever may ask the "
        "model can then reach what the frontend's pods can.",
    )
    max_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] | None = Field(
        None, description="Most bytes of one file; 64 MiB if left out."
    )
    fetch_timeout_seconds: Seconds | None = Field(
        None, description="Longest time that fetching one file may take; 30 s if left out."
    )
    max_audio_seconds: Annotated[int, Field(ge=1, le=86_400)] | None = Field(
        None, description="Longest sound; 600 s if left out."
    )
    max_video_seconds: Annotated[int, Field(ge=1, le=86_400)] | None = Field(
        None, description="Longest video; 600 s if left out."
    )
    max_video_frames: Annotated[int, Field(ge=1, le=4096)] | None = Field(
        None, description="Most frames that are read of a video; 32 if left out."
    )
