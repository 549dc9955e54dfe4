"""Where stages run in relation to each other."""

from typing import Annotated, TypeAlias

from pydantic import Field

from omni_contract.api.v1alpha1.base import ApiModel, ListSet, StageName

Colocated: TypeAlias = Annotated[tuple[StageName, ...], Field(min_length=2, max_length=16), ListSet()]


class PlacementSpec(ApiModel):
    """Where stages run in relation to each other."""

    colocate: Annotated[tuple[Colocated, ...], Field(max_length=8)] = Field(
        (),
        description="Groups of stages that share a pod, a process each: they hand over through shared memory, may "
        "share devices, have equal replicas, and restart together. `omni serve` runs all stages on one machine anyway.",
    )

    def group_of(self, stage: str) -> Colocated | None:
        return next((group for group in self.colocate if stage in group), None)
