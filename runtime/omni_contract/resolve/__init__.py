"""Pure: an OmniModel and the accelerator catalog in, a ResolvedModel and its stage files and stage table out."""

from omni_contract.resolve.checks import spec_problems
from omni_contract.resolve.documents import StageLocation, stage_file, stage_revision, stage_table
from omni_contract.resolve.masters import device_of_master, managed_stores, with_masters_at
from omni_contract.resolve.model import ResolveError, resolve
from omni_contract.resolve.resolved import (
    ResolvedDevice,
    ResolvedEdge,
    ResolvedGroup,
    ResolvedModel,
    ResolvedStage,
    VolumeSource,
)

__all__ = [
    "ResolveError",
    "ResolvedDevice",
    "ResolvedEdge",
    "ResolvedGroup",
    "ResolvedModel",
    "ResolvedStage",
    "StageLocation",
    "VolumeSource",
    "device_of_master",
    "managed_stores",
    "resolve",
    "spec_problems",
    "stage_file",
    "stage_revision",
    "stage_table",
    "with_masters_at",
]
