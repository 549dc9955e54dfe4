"""An image model of fake stages in a row, resolved as local mode does it."""

from collections.abc import Mapping
from itertools import pairwise

from omni_contract.api.v1alpha1 import (
    ConnectorSpec,
    EdgeSpec,
    FakeEngine,
    FrontendLimits,
    FrontendSpec,
    ModelSource,
    OmniModelSpec,
    OutputSpec,
    StageSpec,
)
from omni_contract.resolve import ResolvedModel, resolve
from omni_runtime.local.catalog import local_catalog
from omni_runtime.local.devices import Machine

STAGES = ("text-encoder", "denoiser", "vae-decoder")
MODEL = "fake-painter"
SIDE = 64
DRAIN_S = 10
NO_ENGINES: Mapping[str, FakeEngine] = {}


def fake_chain(
    engines: Mapping[str, FakeEngine] = NO_ENGINES,
    usual: FakeEngine = FakeEngine(),  # noqa: B008 - immutable
    replicas: int = 1,
    connector: str = "auto",
    limits: FrontendLimits = FrontendLimits(),  # noqa: B008 - immutable
    connectors: tuple[ConnectorSpec, ...] = (),
) -> ResolvedModel:
    """Every stage runs the usual engine but those in `engines`. Connector "grpc" makes every payload a handle."""
    stages = tuple(
        StageSpec.model_validate(
            {
                "name": name,
                "fake": engines.get(name, usual),
                "replicas": replicas,
                "drain": {"timeout_seconds": DRAIN_S},
                "sampling": {"width": SIDE, "height": SIDE} if name == STAGES[0] else {},
                "output": OutputSpec(modality="image") if name == STAGES[-1] else None,
            }
        )
        for name in STAGES
    )
    edges = tuple(
        EdgeSpec.model_validate({"from": one, "to": other, "connector": connector}) for one, other in pairwise(STAGES)
    )
    source = ModelSource(source="pvc://models/none", load_format="dummy")
    spec = OmniModelSpec(
        model=source, stages=stages, edges=edges, connectors=connectors, frontend=FrontendSpec(limits=limits)
    )
    return resolve(MODEL, "default", spec, local_catalog(spec, Machine({}), allow_fake_engine=True))
