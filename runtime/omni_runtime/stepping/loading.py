"""What loading means for every kind of checkpoint: from where, to where, in which format; and how it fails."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_file import StageFile
from omni_runtime.stepping.device import torch_device

STORED_DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
"""safetensors' names."""


class ModelLoadError(OmniError):
    """The model folder cannot be used as it is; the message says why, and needs no traceback."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.STAGE_FAILED, message)


@dataclass(frozen=True)
class LoadPlan:
    """`dtype` None keeps each part as it is stored; `is_dummy` makes random weights from the configurations."""

    folder: Path
    device: torch.device
    dtype: torch.dtype | None = None
    is_dummy: bool = False


def stored_dtype(folder: Path) -> torch.dtype:
    """The element type of a folder's weights, from the first safetensors header; float32 if it says none."""
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
        found = {entry["dtype"] for name, entry in header.items() if name != "__metadata__"}
        for name, dtype in STORED_DTYPES.items():
            if name in found:
                return dtype
    return torch.float32


def load_plan(stage_file: StageFile, dtype: str) -> LoadPlan:
    """What a stage file says about loading; `dtype` is its engine block's, "auto" or torch's name."""
    return LoadPlan(
        folder=Path(stage_file.model_path),
        device=torch_device(stage_file.vendor, stage_file.memory_fraction),
        dtype=None if dtype == "auto" else getattr(torch, dtype),
        is_dummy=stage_file.load_format == "dummy",
    )
