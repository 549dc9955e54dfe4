"""The resolved model: every default filled, every preset merged, every rule between fields checked.

Made by `resolve`, read by the operator's `build`, by local mode and by nobody else's guesswork. Immutable, comparable.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from omni_contract.accelerators import ClaimMount, Toleration, Vendor
from omni_contract.api.v1alpha1 import (
    AutoscalingSpec,
    ConnectorSpec,
    EngineBlock,
    FrontendSpec,
    LogLevel,
    MonitoringSpec,
    OutputSpec,
    StreamingSpec,
    TlsSpec,
)
from omni_contract.wire.payload import Value


@dataclass(frozen=True)
class VolumeSource:
    """`pvc://CLAIM/PATH`: a folder in a PersistentVolumeClaim; locally `--volume CLAIM=DIR`."""

    claim: str
    path: str


@dataclass(frozen=True)
class ResolvedDevice:
    """Where a stage runs and with what: a pool merged over its vendor profile."""

    pool: str
    vendor: Vendor
    image: str
    command: tuple[str, ...]
    resource: str | None
    count: int
    env: Mapping[str, str]
    mounts: tuple[ClaimMount, ...]
    node_selector: Mapping[str, str]
    tolerations: tuple[Toleration, ...]
    runtime_class_name: str | None
    startup_factor: float


@dataclass(frozen=True)
class ResolvedDiagnostics:
    """What a stage's processes tell of what they do, and to whom."""

    log_level: LogLevel = "info"
    otlp_endpoint: str | None = None
    """None: no traces."""
    profile_bytes: int | None = None
    """Room for profiles; None: none are recorded."""
    admin_port: int | None = None
    """On the pod's loopback address; None: none."""


@dataclass(frozen=True)
class ResolvedStage:
    name: str
    engine: EngineBlock
    device: ResolvedDevice
    replicas: int
    requests: Mapping[str, str]
    """Kubernetes quantities by resource name (cpu, memory)."""
    limits: Mapping[str, str]
    sampling: Mapping[str, Value]
    max_in_flight: int
    max_batch_size: int
    batch_timeout_s: float
    output: OutputSpec | None
    """What this stage gives the client; None if only other stages read it."""
    shm_bytes: int
    drain_timeout_s: int
    startup_timeout_s: int
    template: Mapping[str, object]
    """The user's pod template, merged under ours by the operator; local mode ignores it and says so."""
    diagnostics: ResolvedDiagnostics = ResolvedDiagnostics()
    memory_fraction: float | None = None
    """Of each of its devices; None: all of it."""


@dataclass(frozen=True)
class ResolvedEdge:
    source: str
    target: str
    connector: str
    transform: str | None
    retain: str
    contract_hash: str
    streaming: StreamingSpec | None = None
    """How it streams; None if payloads travel whole."""
    shares_memory: bool = False
    """Whether its two ends run where both see the same memory."""

    @property
    def name(self) -> str:
        return f"{self.source}->{self.target}"


@dataclass(frozen=True)
class ResolvedGroup:
    """Stages in one pod and one container, a process each: containers of a pod cannot share a device plugin's GPU."""

    stages: tuple[str, ...]
    devices: Mapping[str, tuple[int, ...]]
    """Of each stage, counted from 0 among the pod's."""
    visible_devices_variable: str | None

    @property
    def device_count(self) -> int:
        return 1 + max((number for numbers in self.devices.values() for number in numbers), default=-1)


@dataclass(frozen=True)
class ResolvedModel:
    name: str
    namespace: str
    family: str | None
    source: VolumeSource
    load_format: str
    served_names: tuple[str, ...]
    stages: tuple[ResolvedStage, ...]
    """In topological order."""
    edges: tuple[ResolvedEdge, ...]
    connectors: tuple[ConnectorSpec, ...]
    """Those with settings that edges may use: by name, or because `auto` picks them."""
    frontend: FrontendSpec
    tls: TlsSpec | None = None
    """None: the parts of the model talk in the clear."""
    monitoring: MonitoringSpec = field(default_factory=MonitoringSpec)
    groups: tuple[ResolvedGroup, ...] = ()
    """Stages that share a pod; every other stage has pods of its own."""
    autoscaling: Mapping[str, AutoscalingSpec] = field(default_factory=dict)
    """Of the stages whose replicas the load decides; `replicas` has the fewest of them."""

    @property
    def frontend_log_level(self) -> LogLevel:
        return self.frontend.log_level or self.monitoring.log_level

    def group_of(self, stage: str) -> ResolvedGroup | None:
        return next((group for group in self.groups if stage in group.stages), None)

    def upstream(self, stage: str) -> frozenset[str]:
        """The stage and all that feed it."""
        sources = (edge.source for edge in self.edges if edge.target == stage)
        return frozenset({stage}).union(*map(self.upstream, sources))

    def stage(self, name: str) -> ResolvedStage:
        return next(stage for stage in self.stages if stage.name == name)
