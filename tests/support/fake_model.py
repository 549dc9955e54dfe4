"""Fake workers for every stage of a table, listening on sockets in a folder of the test's own."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from omni_contract.wire.names import edge_name
from omni_contract.wire.stage_table import StageTable
from tests.support.fake_worker import FakeWorker


def fake_worker(table: StageTable, stage: str, folder: Path, index: int = 0, **fields: Any) -> FakeWorker:
    """A worker for a stage of the table that agrees with the table's contracts."""
    return FakeWorker(
        stage=stage,
        address=address(folder, stage, index),
        replica=f"{stage}-{index}",
        inputs={edge_name(e.source, e.target): e.contract_hash for e in table.edges if e.target == stage},
        outputs={edge_name(e.source, e.target): e.contract_hash for e in table.edges if e.source == stage},
        **fields,
    )


def address(folder: Path, stage: str, index: int = 0) -> str:
    return f"unix:{folder}/{stage}-{index}.sock"


def located(table: StageTable, folder: Path, replicas: Mapping[str, int] | None = None) -> StageTable:
    """The table with the addresses of so many replicas of each stage (one unless said)."""
    counts = replicas or {}
    stages = tuple(
        stage.model_copy(
            update={"addresses": tuple(address(folder, stage.name, i) for i in range(counts.get(stage.name, 1)))}
        )
        for stage in table.stages
    )
    return table.model_copy(update={"stages": stages})


@asynccontextmanager
async def fake_model(table: StageTable, folder: Path, **fields: Any) -> AsyncIterator[dict[str, FakeWorker]]:
    """One worker for each stage."""
    async with AsyncExitStack() as stack:
        yield {
            stage.name: await stack.enter_async_context(fake_worker(table, stage.name, folder, **fields))
            for stage in table.stages
        }
