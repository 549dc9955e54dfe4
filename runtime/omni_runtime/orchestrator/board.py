"""Where a request is: each of its stages, and what lies on each edge between them. Nothing is sent here."""

from omni_contract.wire.names import FINAL
from omni_runtime.orchestrator.graph import Plan, restart_set
from omni_runtime.orchestrator.routing import NO_WISH, Wish
from omni_runtime.orchestrator.states import StageEventKind, StageState
from omni_runtime.orchestrator.steps import EdgePayload, Step

NOT_SENT = frozenset({StageState.WAITING, StageState.QUEUED})


class Board:
    def __init__(self, plan: Plan) -> None:
        self.steps = {stage.name: Step(stage, stage.name) for stage in plan.stages}
        self.payloads: dict[str, EdgePayload] = {}
        self._plan = plan

    @property
    def is_complete(self) -> bool:
        """True once every stage has finished and every final output was read."""
        return all(map(_is_done, self.steps.values()))

    @property
    def unfinished(self) -> list[str]:
        return [name for name, step in self.steps.items() if step.is_active]

    def fed(self) -> list[Step]:
        """The stages that have got all of their inputs and do not know it yet."""
        return [step for step in self.steps.values() if self.is_fed(step)]

    def is_fed(self, step: Step) -> bool:
        return step.state is StageState.WAITING and self.payloads.keys() >= step.planned.input_names

    def wanted(self, step: Step) -> tuple[str, ...]:
        """What a stage is asked for: each edge with a consumer yet to run, and the final output unless it was read."""
        if step.attempt == 0:
            return step.planned.output_names
        edges = (edge for edge in step.planned.outputs if self.steps[edge.target].state is not StageState.FINISHED)
        names = tuple(edge.name for edge in edges if edge.name not in self.payloads)
        return (*names, FINAL) if step.planned.modality and not step.is_answered else names

    def is_needed(self, step: Step) -> bool:
        """False once all that read what the stage makes have ended: whatever becomes of it then does not matter."""
        is_read = any(self.steps[edge.target].state is not StageState.FINISHED for edge in step.planned.outputs)
        return is_read or (step.planned.modality is not None and not step.is_answered)

    def contracts(self, step: Step) -> tuple[tuple[str, str], ...]:
        """Each of the stage's inputs with the contract hash that its replica must share."""
        return tuple(
            [(edge.name, self.payloads[edge.name].replica.outputs.get(edge.name, "")) for edge in step.planned.inputs]
        )

    def wish(self, step: Step, affinity: str) -> Wish:
        """To run where those of the inputs lie that travel by themselves, or where others of the same key ran."""
        lying = [self.payloads[edge.name] for edge in step.planned.inputs]
        localities = [payload.replica.locality for payload in lying if not isinstance(payload.source, bytes)]
        return Wish(frozenset(localities), affinity) if localities or affinity else NO_WISH

    def holds_what_is_needed(self, step: Step) -> bool:
        """True if a finished stage's payload is gone before its consumer was even sent to a worker."""
        return any(
            edge.name in self.payloads
            and not self.payloads[edge.name].is_readable
            and self.steps[edge.target].state in NOT_SENT
            for edge in step.planned.outputs
        )

    def useless_without(self, failed: Step) -> list[Step]:
        """The stage, and all whose work only serves outputs that it has a part in."""
        kept = {name for name in self._finals() if failed.name not in self._plan.upstream(name)}
        needed = frozenset().union(*(self._plan.upstream(name) for name in kept))
        return [step for name, step in self.steps.items() if name not in needed]

    def to_restart(self, lost: Step) -> list[Step]:
        names = restart_set(self._plan, lost.name, self._readable(), frozenset(self.unfinished))
        return [self.steps[name] for name in names]

    def reset(self, step: Step) -> None:
        for edge in step.planned.outputs:
            self.payloads.pop(edge.name, None)
        step.move(StageEventKind.RESTARTED)

    def _finals(self) -> list[str]:
        return [name for name, step in self.steps.items() if step.planned.modality is not None and not step.is_dropped]

    def _readable(self) -> frozenset[str]:
        """Edges whose payloads a restarted consumer can still get.

        What `consumed` frees may be gone once sent for, and of a stream that somebody has begun to read the beginning
        is gone: its producer and all of its readers start over together.
        """
        return frozenset(
            edge.name
            for edge in self._plan.edges
            if (payload := self.payloads.get(edge.name)) is not None
            and payload.is_readable
            and (isinstance(payload.source, bytes) or edge.outlives_consumer or self._is_unsent(edge.target))
        )

    def _is_unsent(self, stage: str) -> bool:
        return self.steps[stage].state in NOT_SENT


def _is_done(step: Step) -> bool:
    return step.state is StageState.FINISHED and (step.is_answered or step.planned.modality is None)
