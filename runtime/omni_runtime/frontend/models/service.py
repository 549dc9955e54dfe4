"""The names that a model is served under."""

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.models.schema import Model
from omni_runtime.frontend.validation import LONGEST_VALUE, shortened
from omni_runtime.orchestrator.graph import output_modalities

OWNER = "omni-operator"


def served_models(table: StageTable) -> list[Model]:
    modalities = list(output_modalities(table))
    return [Model(id=name, created=table.created, owned_by=OWNER, modalities=modalities) for name in table.served_names]


def check_served(table: StageTable, name: str | None) -> str:
    """The name that a request goes by; without one, the model's first."""
    if name is None:
        return table.served_names[0]
    if name not in table.served_names:
        served = ", ".join(f'"{known}"' for known in table.served_names)
        text = f'model "{shortened(name, LONGEST_VALUE)}" is not served here; use {served}'
        raise OmniError(ErrorCode.MODEL_NOT_FOUND, text, "model")
    return name
