"""Pure: what `omni serve` writes and which processes it starts, for a resolved model and a place to run it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from omni_contract.accelerators import Vendor
from omni_contract.api.v1alpha1 import OutputSpec
from omni_contract.resolve import StageLocation, stage_file, stage_revision, stage_table
from omni_contract.resolve.resolved import ResolvedModel, ResolvedStage
from omni_contract.wire.frontend_arguments import media_arguments
from omni_runtime.frontend.media.settings import MediaSettings, arguments_of
from omni_runtime.local.dealing import deal
from omni_runtime.local.devices import DEVICE_KINDS, Machine
from omni_runtime.statistics.settings import StatsSettings

FRONTEND = "frontend"
LOG_JSON = "--log-json"
"""Every process logs JSON; the console shortens it for people."""
LOG_LEVEL = "--log-level"
STAGE_TABLE = "stage-table.json"
FRONTEND_START_S = 120
FRONTEND_STOP_MARGIN_S = 5
"""Beyond the longest drain of a stage: the frontend answers what it has before the stages are told to stop."""
STAGE_STOP_MARGIN_S = 5
"""Beyond its own drain: a stage gives up by itself, says what it left undone and sends its last messages."""


@dataclass(frozen=True)
class Place:
    """Where and how the processes run."""

    directory: Path
    """The private runtime directory."""
    host: str
    port: int
    machine: Machine
    volumes: Mapping[str, Path]
    """Folder by claim."""
    created: int
    """Unix seconds; what /v1/models reports."""
    api_keys: Path | None = None
    trace_dir: Path | None = None
    log_level: str | None = None
    """None: what the file says."""
    profile_dir: Path | None = None
    stats: StatsSettings = field(default_factory=StatsSettings)
    media: MediaSettings = field(default_factory=MediaSettings)
    admin_port: int | None = None

    @property
    def volumes_root(self) -> Path:
        return self.directory / "volumes"


@dataclass(frozen=True)
class ProcessPlan:
    name: str
    """A stage's name, with the replica's number if there are several; or "frontend"."""
    module: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    """On top of the supervisor's own."""
    health: str
    """Where it says that it is ready: "unix:PATH" (grpc.health.v1) or an http URL."""
    start_timeout_s: float
    stop_timeout_s: float


@dataclass(frozen=True)
class LocalPlan:
    model: str
    served_name: str
    url: str
    size: str
    """WIDTHxHEIGHT of a picture unless the request says otherwise."""
    modalities: tuple[str, ...]
    """What clients can ask for."""
    voice: str | None
    """One that the model has, if it names any."""
    files: Mapping[Path, str]
    links: Mapping[Path, Path]
    """Links to make, with their targets: one for each volume."""
    stages: tuple[ProcessPlan, ...]
    frontend: ProcessPlan
    services: tuple[ProcessPlan, ...] = ()
    """What stages need to run beside them; they outlast the stages."""

    @property
    def processes(self) -> tuple[ProcessPlan, ...]:
        return (*self.services, *self.stages, self.frontend)


def local_plan(model: ResolvedModel, place: Place) -> LocalPlan:
    table_path = place.directory / STAGE_TABLE
    table = stage_table(model, "local", place.created, lambda stage: _location(model.stage(stage), place))
    files = {_stage_file_path(place, stage.name): _stage_file_text(model, stage, place) for stage in model.stages}
    return LocalPlan(
        model=model.name,
        served_name=model.served_names[0],
        url=f"http://{_url_host(place.host)}:{place.port}",
        size=_default_size(model),
        modalities=tuple(output.modality for output in _outputs(model)),
        voice=next((voice for output in _outputs(model) for voice in output.voices), None),
        files={**files, table_path: table.model_dump_json(by_alias=True, indent=1)},
        links={place.volumes_root / claim: folder for claim, folder in place.volumes.items()},
        stages=tuple(_stage_processes(model, place)),
        frontend=_frontend_process(model, place, table_path),
    )


def _stage_processes(model: ResolvedModel, place: Place) -> Iterator[ProcessPlan]:
    for one in deal(model, place.machine):
        yield _stage_process(one.stage, one.replica, place, _visible_devices(one.stage.device.vendor, one.devices))


def _stage_process(stage: ResolvedStage, replica: int, place: Place, devices: Mapping[str, str]) -> ProcessPlan:
    address = _address(stage, replica, place)
    name = stage.name if stage.replicas == 1 else f"{stage.name}-{replica}"
    files = ("--stage-file", str(_stage_file_path(place, stage.name)))
    where = ("--listen", address, "--advertise", address, "--replica", name)
    return ProcessPlan(
        name=name,
        module="omni_runtime.worker",
        arguments=(*files, *where, *_tracing(place), *_profiling(place), *_logging(place, stage.diagnostics.log_level)),
        environment={**stage.device.env, **devices},
        health=address,
        start_timeout_s=stage.startup_timeout_s,
        stop_timeout_s=STAGE_STOP_MARGIN_S + stage.drain_timeout_s,
    )


def _frontend_process(model: ResolvedModel, place: Place, table: Path) -> ProcessPlan:
    files = ("--stage-table", str(table))
    keys = () if place.api_keys is None else ("--api-keys", str(place.api_keys))
    where = ("--host", place.host, "--port", str(place.port), "--discovery", "local")
    admin = () if place.admin_port is None else ("--admin-port", str(place.admin_port))
    told = (
        *admin,
        *media_arguments(model.frontend.media),
        *arguments_of(place.media),
        *_tracing(place),
        *_statistics(place, model.frontend.log_stats),
        *_logging(place, model.frontend_log_level),
    )
    drain_s = max(stage.drain_timeout_s for stage in model.stages)
    return ProcessPlan(
        name=FRONTEND,
        module="omni_runtime.frontend",
        arguments=(*files, *where, *keys, "--drain-timeout", str(drain_s), *told),
        environment={},
        health=f"http://{_url_host(place.host)}:{place.port}/readyz",
        start_timeout_s=FRONTEND_START_S + max(stage.startup_timeout_s for stage in model.stages),
        stop_timeout_s=FRONTEND_STOP_MARGIN_S + STAGE_STOP_MARGIN_S + drain_s,
    )


def _logging(place: Place, of_file: str) -> tuple[str, ...]:
    return (LOG_JSON, LOG_LEVEL, place.log_level or of_file)


def _tracing(place: Place) -> tuple[str, ...]:
    return () if place.trace_dir is None else ("--trace-dir", str(place.trace_dir.absolute()))


def _statistics(place: Place, is_logged: bool) -> tuple[str, ...]:
    logged = ("--log-stats",) if is_logged or place.stats.is_logged else ()
    directory = place.stats.directory
    return logged if directory is None else (*logged, "--stats-dir", str(directory.absolute()))


def _profiling(place: Place) -> tuple[str, ...]:
    return () if place.profile_dir is None else ("--profile-dir", str(place.profile_dir.absolute()))


def _stage_file_text(model: ResolvedModel, stage: ResolvedStage, place: Place) -> str:
    revision = stage_revision(model, stage.name)
    return stage_file(model, stage.name, revision, str(place.volumes_root)).model_dump_json(by_alias=True, indent=1)


def _stage_file_path(place: Place, stage: str) -> Path:
    return place.directory / f"{stage}.json"


def _location(stage: ResolvedStage, place: Place) -> StageLocation:
    return StageLocation(addresses=tuple(_address(stage, replica, place) for replica in range(stage.replicas)))


def _address(stage: ResolvedStage, replica: int, place: Place) -> str:
    return f"unix:{place.directory}/{stage.name}-{replica}.sock"


def _visible_devices(vendor: Vendor, chosen: Sequence[str]) -> Mapping[str, str]:
    """A process sees the devices that it was given and no other; one on the CPU sees none."""
    return {kind.visible_variable: ",".join(chosen) if of is vendor else "" for of, kind in DEVICE_KINDS.items()}


def _outputs(model: ResolvedModel) -> list[OutputSpec]:
    return [stage.output for stage in model.stages if stage.output is not None and stage.output.final]


def _default_size(model: ResolvedModel) -> str:
    sampling = {name: value for stage in model.stages for name, value in stage.sampling.items()}
    return f"{sampling.get('width', 1024)}x{sampling.get('height', 1024)}"


def _url_host(host: str) -> str:
    """What a client on this machine puts into a URL for an address that we listen on."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{reachable}]" if ":" in reachable else reachable
