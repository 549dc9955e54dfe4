"""What a family's preset holds: the stage graph and the defaults that a model file need not repeat."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from omni_contract.api.v1alpha1 import DIFFUSION_PHASES, DiffusionEngine, EdgeSpec, EngineBlock, StageSpec
from omni_contract.presets.payloads import PayloadSchema

ParameterKind: TypeAlias = Literal["integer", "number", "text"]


@dataclass(frozen=True)
class Preset:
    """A family as data. Its code (select, adapt, tiny) is in `omni_runtime.families`.

    A model file changes a preset in one of two ways. If every stage in the file has a name of the preset, the file's
    fields lie over the preset's, stage by stage and edge by edge. If one name is not in the preset, the file's stages
    and edges replace the preset's graph; defaults, modality and endpoints stay.
    """

    family: str
    modality: Literal["text", "image", "audio", "video"]
    """What the last stage makes, unless the file says otherwise."""
    stages: tuple[StageSpec, ...]
    edges: tuple[EdgeSpec, ...]
    sampling: Mapping[str, int | float | str]
    """Defaults of request parameters, under what the file's stages say."""
    parameters: Mapping[str, ParameterKind]
    """Every request parameter that the family reads."""
    transforms: tuple[str, ...]
    """Names that an edge may give as its transform."""
    endpoints: tuple[str, ...]
    """HTTP paths of the frontend that the family answers."""
    payloads: Mapping[str, PayloadSchema] = field(default_factory=dict)
    """What leaves a stage, by the last phase of a diffusion stage and by the name of any other; unchecked if absent."""
    number_formats: Mapping[str, str] = field(default_factory=dict)
    """Of stages that compute in one dtype alone, whatever is asked of others."""

    def made_by(self, stage: str, engine: EngineBlock) -> PayloadSchema | None:
        """What the stage hands on."""
        return self.payloads.get(engine.phases[-1] if isinstance(engine, DiffusionEngine) else stage)

    def taken_from(self, producer: str, engine: EngineBlock) -> PayloadSchema | None:
        """What a stage with this engine is handed by a producer."""
        if producer in self.payloads or not isinstance(engine, DiffusionEngine):
            return self.payloads.get(producer)
        first = DIFFUSION_PHASES.index(engine.phases[0])
        return self.payloads.get(DIFFUSION_PHASES[first - 1]) if first else None
