"""What a model can answer with now: text goes on while the stages that speak are away."""

from collections.abc import Collection
from dataclasses import dataclass

from omni_contract.resolve import ResolvedModel, ResolvedStage
from omni_operator.plan import names


@dataclass(frozen=True)
class Output:
    """One kind of answer. It cannot be served while components that it needs are `missing`."""

    modality: str
    missing: tuple[str, ...]

    @property
    def is_servable(self) -> bool:
        return not self.missing


def outputs_of(model: ResolvedModel, live: Collection[str]) -> tuple[Output, ...]:
    """In stage order. `live` are the components with a ready replica."""
    modalities = dict.fromkeys(filter(None, map(_answers_with, model.stages)))
    return tuple(
        Output(modality, tuple(part for part in _needed(model, modality) if part not in live))
        for modality in modalities
    )


def _answers_with(stage: ResolvedStage) -> str | None:
    return stage.output.modality if stage.output and stage.output.final else None


def _needed(model: ResolvedModel, modality: str) -> list[str]:
    """Components, each once: those of the stages from the request to the answer, and the frontend."""
    ends = [stage.name for stage in model.stages if _answers_with(stage) == modality]
    chain = {name for end in ends for name in model.upstream(end)}
    stages = (names.component_of(model, stage.name) for stage in model.stages if stage.name in chain)
    return list(dict.fromkeys([*stages, names.FRONTEND]))
