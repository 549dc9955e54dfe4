"""The stage runtime. `from omni_runtime import Omni, AsyncOmni` runs a model from Python, without a server."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omni_runtime.offline.async_omni import AsyncOmni
    from omni_runtime.offline.omni import Omni
    from omni_runtime.offline.outputs import OmniRequestOutput

__all__ = ["AsyncOmni", "Omni", "OmniRequestOutput"]

OFFERED = {"AsyncOmni": "async_omni", "Omni": "omni", "OmniRequestOutput": "outputs"}
"""Imported when they are asked for: every process of ours imports this package, and few need them."""


def __getattr__(name: str) -> Any:
    if name not in OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.offline.{OFFERED[name]}"), name)
