"""What `omni control` does, for the stages of a model that this process runs."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from omni_contract.api.nearest import did_you_mean
from omni_contract.wire.stage_table import StageTable
from omni_runtime.administration.asking import Worker, ask
from omni_runtime.administration.calls import CALLS, DEFAULT_STEPS, DEFAULT_TIMEOUT_S
from omni_runtime.local.errors import InputError
from omni_runtime.orchestrator import Orchestrator
from omni_runtime.together import together
from omni_runtime.transport.plain import PLAIN


class Control:
    """A call goes to all replicas of the stages named, of all stages if none is. Raises RefusedError if one refuses."""

    def __init__(self, orchestrator: Orchestrator) -> None:
        self._orchestrator = orchestrator
        self._profiled: Sequence[str] | None = None

    async def start_profile(self, stages: Sequence[str] | None = None, steps: int = DEFAULT_STEPS) -> None:
        await self._ask("start-profile", stages, steps=steps)
        self._profiled = stages

    async def stop_profile(self) -> list[str]:
        """The traces of the stages that were recorded."""
        replies: list[Any] = await self._ask("stop-profile", self._profiled)
        return [reply.trace for reply in replies]

    async def sleep(self, stages: Sequence[str] | None = None, level: int = 1) -> int:
        """How many bytes of the devices' memory they gave back, once nothing runs on them."""
        replies: list[Any] = await self._ask("sleep", stages, level=level, timeout=DEFAULT_TIMEOUT_S)
        return sum(reply.freed_bytes for reply in replies)

    async def wake(self, stages: Sequence[str] | None = None) -> None:
        await self._ask("wake", stages)

    async def _ask(self, call: str, stages: Sequence[str] | None, **options: Any) -> list[Message]:
        workers = workers_of(self._orchestrator.table, stages)
        return await together(ask(CALLS[call], worker, Namespace(**options), PLAIN) for worker in workers)


def workers_of(table: StageTable, stages: Sequence[str] | None) -> list[Worker]:
    """Raises InputError for a stage that the model does not have."""
    known = {stage.name: stage.addresses for stage in table.stages}
    names = list(known) if stages is None else stages
    for name in names:
        if name not in known:
            raise InputError(f'there is no stage "{name}"{did_you_mean(name, known)}; there are {", ".join(known)}')
    return [Worker(address) for name in names for address in known[name]]
