"""The phases of a diffusion model over its stages: each runs once, and edges lead from one to the next."""

from collections.abc import Iterable

from omni_contract.api.problems import Path, Problem
from omni_contract.api.v1alpha1 import DIFFUSION_PHASES, DiffusionEngine, DiffusionPhase, StageSpec
from omni_contract.resolve.graph import Graph


def phase_problems(stages: list[tuple[Path, StageSpec]], graph: Graph) -> list[Problem]:
    """Phases that no stage runs, that two stages run, and edges that go against their order."""
    engines = {stage.name: stage.engine for _, stage in stages if isinstance(stage.engine, DiffusionEngine)}
    problems = _repeated(stages)
    if len(engines) == len(stages):  # a stage of another kind, such as a fake, may stand for any phase
        problems += _missing(engines.values())
    for edge in graph.edges:
        producer, consumer = engines.get(edge.from_), engines.get(edge.to)
        if producer and consumer and not _follow(producer, consumer):
            message = (
                f'edge "{edge.name}" leads from {producer.phases[-1]} to {consumer.phases[0]}; '
                "a picture goes through encode, denoise, decode in this order"
            )
            problems.append(Problem(("spec", "edges"), message))
    return problems


def _follow(producer: DiffusionEngine, consumer: DiffusionEngine) -> bool:
    order = DIFFUSION_PHASES.index
    return order(consumer.phases[0]) == order(producer.phases[-1]) + 1


def _missing(engines: Iterable[DiffusionEngine]) -> list[Problem]:
    run = {phase for engine in engines for phase in engine.phases}
    return [
        Problem(("spec", "stages"), f"no stage runs the phase {phase}; add it to diffusion.phases of a stage")
        for phase in DIFFUSION_PHASES
        if phase not in run
    ]


def _repeated(stages: list[tuple[Path, StageSpec]]) -> list[Problem]:
    runs: dict[DiffusionPhase, str] = {}
    problems = []
    for path, stage in stages:
        for phase in stage.diffusion.phases if stage.diffusion else ():
            other = runs.setdefault(phase, stage.name)
            if other != stage.name:
                message = f'stages "{other}" and "{stage.name}" both run the phase {phase}; leave it to one of them'
                problems.append(Problem((*path, "diffusion", "phases"), message))
    return problems
