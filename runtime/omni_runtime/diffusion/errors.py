"""What an exception on the step thread means to the request that it ends."""

import torch

from omni_contract.wire.errors import ErrorCode, OmniError

CPU_OUT_OF_MEMORY = "can't allocate memory"


def translate(error: Exception) -> OmniError:
    """A fresh error without a traceback, whose frames would keep the request's tensors alive."""
    if isinstance(error, OmniError):
        return OmniError(error.code, error.message, error.param)
    if _is_out_of_memory(error):
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        text = "the device has too little memory for this request; ask for a smaller size"
        return OmniError(ErrorCode.OUT_OF_MEMORY, text)
    return OmniError(ErrorCode.STAGE_FAILED, f"{type(error).__name__}: {str(error)[:500]}")


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or CPU_OUT_OF_MEMORY in str(error)
