"""Where the workers of one pod listen: its processes share its ports."""

from dataclasses import dataclass

from omni_contract.wire import names as wire


@dataclass(frozen=True)
class WorkerPorts:
    """Of the worker of the stage at this place of its group."""

    index: int

    @property
    def stage(self) -> int:
        return wire.STAGE_PORT + wire.GROUP_PORT_STEP * self.index

    @property
    def health(self) -> int:
        return wire.HEALTH_PORT + wire.GROUP_PORT_STEP * self.index

    @property
    def pipe(self) -> int:
        """Nobody tells a worker: it is as far above its stage port as it always is."""
        return wire.PIPE_PORT + wire.GROUP_PORT_STEP * self.index

    @property
    def metrics(self) -> int:
        return wire.METRICS_PORT + self.index


def ports_of_group(size: int) -> frozenset[int]:
    """All that a pod of so many stages needs."""
    workers = [WorkerPorts(index) for index in range(size)]
    taken = {port for one in workers for port in (one.stage, one.health, one.pipe, one.metrics)}
    return frozenset({wire.GROUP_HEALTH_PORT, *taken})
