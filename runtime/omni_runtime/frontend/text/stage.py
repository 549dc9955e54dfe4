"""The stage of a model whose text the client gets."""

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.answers import stage_of
from omni_runtime.orchestrator.graph import output_modalities


def text_stage(table: StageTable) -> str:
    """Raises OmniError for a model that writes nothing."""
    stage = stage_of(table, "text")
    if stage is None:
        offered = ", ".join(output_modalities(table))
        raise OmniError(ErrorCode.INVALID_REQUEST, f'model "{table.model}" makes no text, only {offered}', "model")
    return stage
