"""The names that a model is served under, and what it can do."""

from collections.abc import Sequence

from omni_contract.presets import PRESETS
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.models.schema import Model
from omni_runtime.frontend.validation import LONGEST_VALUE, shortened
from omni_runtime.frontend.voices import voices_of
from omni_runtime.orchestrator.graph import output_modalities

OWNER = "omni-operator"
LISTENING = ("/v1/audio/transcriptions", "/v1/audio/translations")


def served_models(table: StageTable) -> list[Model]:
    modalities = output_modalities(table)
    return [
        Model(
            id=name,
            created=table.created,
            owned_by=OWNER,
            modalities=list(modalities),
            endpoints=[*endpoints_of(modalities), *listening_endpoints(table)],
            voices=list(voices_of(table)),
        )
        for name in table.served_names
    ]


def endpoints_of(modalities: Sequence[str]) -> list[str]:
    """What makes these outputs; sound without text is read out, sound beside text is part of an answer."""
    endpoints = ["/v1/chat/completions", "/v1/completions"] if "text" in modalities else []
    if "audio" in modalities and "text" not in modalities:
        endpoints.append("/v1/audio/speech")
    if "image" in modalities:
        endpoints += (
            ["/v1/images/generations"] if "text" in modalities else ["/v1/images/generations", "/v1/chat/completions"]
        )
    return endpoints


def listening_endpoints(table: StageTable) -> list[str]:
    """As the family's preset says; of a model without a family, only its text stage knows whether it hears."""
    preset = PRESETS.get(table.family or "")
    return [path for path in LISTENING if preset is not None and path in preset.endpoints]


def check_served(table: StageTable, name: str | None) -> str:
    """The name that a request goes by; without one, the model's first."""
    if name is None:
        return table.served_names[0]
    if name not in table.served_names:
        served = ", ".join(f'"{known}"' for known in table.served_names)
        text = f'model "{shortened(name, LONGEST_VALUE)}" is not served here; use {served}'
        raise OmniError(ErrorCode.MODEL_NOT_FOUND, text, "model")
    return name
