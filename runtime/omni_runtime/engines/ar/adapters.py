"""The LoRA adapters of a stage, by the names that requests give."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omni_contract.api.v1alpha1.engines import LoraSpec
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Value


@dataclass(frozen=True)
class Adapter:
    """`number` tells it apart from the others in vLLM's cache."""

    name: str
    number: int
    folder: Path


class Adapters:
    def __init__(self, model: Path, loras: Sequence[LoraSpec]) -> None:
        self._by_name = {
            lora.name: Adapter(lora.name, number, model / lora.path) for number, lora in enumerate(loras, 1)
        }

    def asked_for(self, name: Value) -> Adapter | None:
        """None if the request names none; raises OmniError if there is none of that name."""
        if name is None:
            return None
        if not isinstance(name, str) or name not in self._by_name:
            known = ", ".join(f'"{known}"' for known in self._by_name) or "none"
            text = f"there is no adapter {str(name)[:100]!r}; the adapters are: {known}"
            raise OmniError(ErrorCode.MODEL_NOT_FOUND, text, "lora")
        return self._by_name[name]
