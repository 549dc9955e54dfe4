"""What an exception on the step thread means to the request that it ends."""

import torch

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.engines.protocol import EngineDiedError

MAX_TEXT = 500
CPU_OUT_OF_MEMORY = "can't allocate memory"


def translate(error: Exception) -> Exception:
    """A fresh error without a traceback, whose frames would keep the request's tensors alive."""
    if isinstance(error, OmniError):
        return OmniError(error.code, error.message, error.param)
    if _is_out_of_memory(error):
        text = "the device has too little memory for this request; ask for a smaller size"
        return OmniError(ErrorCode.OUT_OF_MEMORY, text)
    if isinstance(error, torch.AcceleratorError):
        # A device-side fault stays: every later call on the device fails, too.
        return EngineDiedError(f"the device is lost: {_text(error)}")
    return OmniError(ErrorCode.STAGE_FAILED, f"{type(error).__name__}: {_text(error)}")


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or CPU_OUT_OF_MEMORY in str(error)


def _text(error: Exception) -> str:
    return str(error)[:MAX_TEXT]
