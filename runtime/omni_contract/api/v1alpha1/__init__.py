"""The OmniModel resource, version v1alpha1: the one source of the CRD, the chart's copy, the docs and the parser."""

from omni_contract.api.v1alpha1.autoscaling import AutoscalingSpec, PodMetric
from omni_contract.api.v1alpha1.connector import (
    BUILT_IN_CONNECTORS,
    CONNECTOR_FIELDS,
    PLAIN_CONNECTORS,
    ConnectorBlock,
    ConnectorKind,
    ConnectorSpec,
    ShmConnector,
    built_in_connector,
)
from omni_contract.api.v1alpha1.edge import EdgeSpec, StreamingSpec
from omni_contract.api.v1alpha1.engines import (
    DIFFUSION_PHASES,
    ENGINE_FIELDS,
    ArEngine,
    DiffusionEngine,
    DiffusionPhase,
    EngineBlock,
    EngineKind,
    FakeEngine,
    GenerationEngine,
)
from omni_contract.api.v1alpha1.frontend import FrontendLimits, FrontendSpec
from omni_contract.api.v1alpha1.model import ModelSource, OmniModelSpec
from omni_contract.api.v1alpha1.monitoring import LogLevel, MonitoringSpec, TracingSpec
from omni_contract.api.v1alpha1.network import NetworkSpec, TlsSpec
from omni_contract.api.v1alpha1.placement import PlacementSpec
from omni_contract.api.v1alpha1.stage import OutputSpec, StageSpec

__all__ = [
    "BUILT_IN_CONNECTORS",
    "CONNECTOR_FIELDS",
    "DIFFUSION_PHASES",
    "ENGINE_FIELDS",
    "PLAIN_CONNECTORS",
    "ArEngine",
    "AutoscalingSpec",
    "ConnectorBlock",
    "ConnectorKind",
    "ConnectorSpec",
    "DiffusionEngine",
    "DiffusionPhase",
    "EdgeSpec",
    "EngineBlock",
    "EngineKind",
    "FakeEngine",
    "FrontendLimits",
    "FrontendSpec",
    "GenerationEngine",
    "LogLevel",
    "ModelSource",
    "MonitoringSpec",
    "NetworkSpec",
    "OmniModelSpec",
    "OutputSpec",
    "PlacementSpec",
    "PodMetric",
    "ShmConnector",
    "StageSpec",
    "StreamingSpec",
    "TlsSpec",
    "TracingSpec",
    "built_in_connector",
]
