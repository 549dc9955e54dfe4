"""Old stage configuration files become OmniModel files. The tables of keys are data; `conversion` is the way in."""

from omni_contract.convert.conversion import Choices, Conversion, convert

__all__ = ["Choices", "Conversion", "convert"]
