"""Rules about stages and their engines."""

from omni_contract.api.quantity import quantity
from omni_contract.api.rules.rule import FieldRule, ItemRule, Rule, Value
from omni_contract.api.v1alpha1 import DIFFUSION_PHASES, ENGINE_FIELDS, DiffusionEngine, OmniModelSpec, StageSpec
from omni_contract.api.v1alpha1.stage import ShmSpec
from omni_contract.wire.names import HEALTH_PORT, METRICS_PORT, PIPE_PORT, STAGE_PORT

STAGE = ("spec", "stages", "[]")
WORKER_PORTS = (STAGE_PORT, HEALTH_PORT, PIPE_PORT, METRICS_PORT)
ENGINES = ", ".join(ENGINE_FIELDS)
ENGINES_SET = f"[{', '.join(f'has(self.{field})' for field in ENGINE_FIELDS)}].filter(isSet, isSet).size()"
ITEM_HAS_ENGINE = " || ".join(f"has(item.{field})" for field in ENGINE_FIELDS)

SHM_SIZE = f"has(self.shm) && has(self.shm.size) ? string(self.shm.size) : '{ShmSpec().size}'"

RUNS = [DIFFUSION_PHASES[first:last] for first in range(3) for last in range(first + 1, 4)]
"""The contiguous parts of encode, denoise, decode."""
RUNS_CEL = ", ".join(f"[{', '.join(map(repr, run))}]" for run in RUNS)


def _engines_set(stage: StageSpec) -> int:
    return sum(getattr(stage, field) is not None for field in ENGINE_FIELDS)


def _is_connected(spec: OmniModelSpec, stage: StageSpec) -> bool:
    ends = {end for edge in spec.edges for end in (edge.from_, edge.to)}
    return spec.family is not None or len(spec.stages) < 2 or stage.name in ends


def _shm_fits(stage: StageSpec) -> bool:
    memory = stage.resources.memory
    return memory is None or quantity(stage.shm.size) < quantity(memory)


def _joined_phases(engine: DiffusionEngine) -> str:
    return ", ".join(engine.phases)


STAGE_RULES: tuple[Rule, ...] = (
    FieldRule(
        at=STAGE,
        pointer="name",
        cel="self.name != 'frontend'",
        holds=lambda stage: stage.name != "frontend",
        message='a stage cannot be called "frontend", because the model\'s own frontend has that name; choose another',
    ),
    FieldRule(
        at=STAGE,
        cel=f"{ENGINES_SET} <= 1",
        holds=lambda stage: _engines_set(stage) <= 1,
        message=f'stage "{{self.name}}" sets more than one engine block; keep one of: {ENGINES}',
    ),
    ItemRule(
        at=("spec",),
        items="stages",
        unless="has(self.family)",
        cel=ITEM_HAS_ENGINE,
        holds=lambda spec, stage: spec.family is not None or _engines_set(stage) > 0,
        message='stage "{item.name}" sets no engine block, and there is no family to give one; '
        f"add one of: {ENGINES}",
    ),
    ItemRule(
        at=("spec",),
        items="stages",
        unless="has(self.family) || self.stages.size() == 1",
        cel="self.edges.exists(edge, edge.from == item.name || edge.to == item.name)",
        holds=_is_connected,
        message='stage "{item.name}" is on no edge, and there is no family to give one; add the edges that lead to it '
        "and from it",
    ),
    FieldRule(
        at=STAGE,
        pointer="maxBatchSize",
        cel="!has(self.maxInFlight) || !has(self.maxBatchSize) || self.maxBatchSize <= self.maxInFlight",
        holds=lambda stage: stage.max_in_flight is None or stage.max_batch_size <= stage.max_in_flight,
        message='stage "{self.name}": a batch of {self.maxBatchSize} can never fill, because maxInFlight admits only '
        "{self.maxInFlight} requests; raise maxInFlight or lower maxBatchSize",
    ),
    FieldRule(
        at=STAGE,
        pointer="batchTimeoutSeconds",
        cel="!has(self.batchTimeoutSeconds) || self.batchTimeoutSeconds == 0.0 "
        "|| (has(self.maxBatchSize) && self.maxBatchSize > 1)",
        holds=lambda stage: stage.batch_timeout_seconds == 0 or stage.max_batch_size > 1,
        message='stage "{self.name}" waits for a batch, but its maxBatchSize is 1; raise maxBatchSize or remove '
        "batchTimeoutSeconds",
    ),
    FieldRule(
        at=STAGE,
        pointer="shm.size",
        cel="!has(self.resources) || !has(self.resources.memory) || "
        f"quantity({SHM_SIZE}).isLessThan(quantity(string(self.resources.memory)))",
        holds=_shm_fits,
        message='stage "{self.name}": {shm} of shared memory do not fit into {memory} of memory, of which they are a '
        "part; raise resources.memory or lower shm.size",
        values={
            "shm": Value(SHM_SIZE, lambda stage: stage.shm.size),
            "memory": Value("self.resources.memory", lambda stage: stage.resources.memory),
        },
    ),
    FieldRule(
        at=STAGE,
        pointer="adminPort",
        cel=f"!has(self.adminPort) || !(self.adminPort in [{', '.join(map(str, WORKER_PORTS))}])",
        holds=lambda stage: stage.admin_port not in WORKER_PORTS,
        message='stage "{self.name}": adminPort {self.adminPort} is a port of the worker itself: '
        f"{', '.join(map(str, WORKER_PORTS))} are taken; choose another adminPort",
    ),
    FieldRule(
        at=(*STAGE, "diffusion"),
        pointer="phases",
        cel=f"!has(self.phases) || self.phases in [{RUNS_CEL}]",
        holds=lambda engine: engine.phases in RUNS,
        message="phases [{phases}] are not a contiguous part of [encode, denoise, decode]; list them in that order, "
        "without a gap",
        values={"phases": Value("self.phases.join(', ')", _joined_phases)},
    ),
    FieldRule(
        at=(*STAGE, "fake"),
        pointer="delaySeconds",
        cel="!has(self.delaySeconds) || self.delaySeconds == 0.0 || (has(self.behavior) && "
        "self.behavior in ['delay', 'burst', 'follow', 'relay'])",
        holds=lambda engine: engine.delay_seconds == 0 or engine.behavior in ("delay", "burst", "follow", "relay"),
        message="delaySeconds is set, but only behaviors delay, burst, follow and relay use it; set one of them or "
        "remove it",
    ),
    FieldRule(
        at=(*STAGE, "fake"),
        pointer="itemsPerStep",
        cel="!has(self.itemsPerStep) || self.itemsPerStep == 1 || (has(self.behavior) && self.behavior == 'relay')",
        holds=lambda engine: engine.items_per_step == 1 or engine.behavior == "relay",
        message="itemsPerStep is set, but only behavior relay uses it; set behavior: relay or remove it",
    ),
    FieldRule(
        at=(*STAGE, "fake"),
        pointer="crashAt",
        cel="!has(self.crashAt) || (has(self.behavior) && self.behavior == 'crash')",
        holds=lambda engine: engine.crash_at is None or engine.behavior == "crash",
        message="crashAt is set, but only behavior crash uses it; set behavior: crash or remove it",
    ),
)
