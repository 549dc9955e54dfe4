"""A model's stages as local processes, and an orchestrator in this process that sends them requests."""

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from os import getpid, getuid
from pathlib import Path

from omni_contract.api.load import InvalidFileError
from omni_contract.api.problems import InvalidModelError
from omni_contract.resolve.resolved import ResolvedModel
from omni_contract.wire.stage_table import StageTable
from omni_runtime.connectors.shm.folder import sweep
from omni_runtime.local.console import Console
from omni_runtime.local.errors import InputError, ServeError
from omni_runtime.local.keeper import Keeper
from omni_runtime.local.masters import LOOPBACK, with_masters
from omni_runtime.local.model_file import model_of
from omni_runtime.local.plan import STAGE_TABLE, LocalPlan, Place, ProcessPlan
from omni_runtime.local.process import Bond, ChildProcess
from omni_runtime.local.runtime_directory import runtime_directory, runtime_root
from omni_runtime.local.serve import free_port, machine_for, resolve_here, write_plan
from omni_runtime.local.settings import ServeSettings
from omni_runtime.local.volumes import check_source, parse_volumes
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from omni_runtime.statistics.telling import Telling
from omni_runtime.worker.settings import DEFAULT_SHARED_MEMORY

NO_FRONTEND = 0
"""The port of a frontend that is planned and not started."""


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def resolved(settings: ServeSettings) -> ResolvedModel:
    """The model as it runs here. Raises ServeError for a file that cannot be served on this machine."""
    try:
        model = resolve_here(model_of(settings, _say), machine_for(settings), settings)
    except (InvalidFileError, InvalidModelError) as exc:
        raise InputError(f"{settings.file} cannot be served:\n{exc}") from exc
    check_source(model, parse_volumes(settings.volumes))
    return model


@asynccontextmanager
async def running_model(model: ResolvedModel, settings: ServeSettings) -> AsyncIterator[Orchestrator]:
    """All stages are ready while the block runs; a stage that crashes is started again. Raises ServeError."""
    with runtime_directory(runtime_root(settings.environment.get("XDG_RUNTIME_DIR"), getuid())) as directory:
        plan = _plan(model, settings, directory)
        table = StageTable.read(plan.files[directory / STAGE_TABLE].encode())
        write_plan(plan)
        try:
            async with _stages(plan, settings.environment), _orchestrator(table, settings) as orchestrator:
                yield orchestrator
        finally:
            # Of children that had to be killed.
            sweep(DEFAULT_SHARED_MEMORY)


def _plan(model: ResolvedModel, settings: ServeSettings, directory: Path) -> LocalPlan:
    place = Place(
        directory=directory,
        host=LOOPBACK,
        port=NO_FRONTEND,
        machine=machine_for(settings),
        volumes=parse_volumes(settings.volumes),
        created=settings.created,
        log_level=settings.log_level,
        profile_dir=settings.profile_dir,
    )
    return with_masters(model, place, lambda: free_port(LOOPBACK, 0))


@asynccontextmanager
async def _stages(plan: LocalPlan, environment: Mapping[str, str]) -> AsyncIterator[None]:
    """Their processes end with the thread that runs this, so it must be one that lasts."""
    bond, console = Bond(), _console([*plan.services, *plan.stages])

    async def start(one: ProcessPlan) -> ChildProcess:
        return await ChildProcess.start(one, bond, environment)

    services = [Keeper(one, start, console) for one in plan.services]
    stages = [Keeper(one, start, console) for one in plan.stages]
    failures: tuple[BaseException, ...] = ()
    try:
        async with asyncio.TaskGroup() as tasks:
            for keeper in (*services, *stages):
                tasks.create_task(keeper.run())
            try:
                for keeper in (*services, *stages):
                    await keeper.is_ready.wait()
                yield
            finally:
                for group in (stages, services):
                    await asyncio.gather(*(keeper.stop() for keeper in group))
    except* ServeError as group:
        failures = group.exceptions
    finally:
        bond.close()
    if failures:
        raise failures[0]


@asynccontextmanager
async def _orchestrator(table: StageTable, settings: ServeSettings) -> AsyncIterator[Orchestrator]:
    name = f"offline-{getpid()}"
    orchestrator = Orchestrator(table, LocalDiscovery(table), OrchestratorSettings(name, is_measured=True))
    with _told(orchestrator, settings, name):
        async with orchestrator.running():
            await orchestrator.wait_ready()
            yield orchestrator


@contextmanager
def _told(orchestrator: Orchestrator, settings: ServeSettings, name: str) -> Iterator[None]:
    telling = Telling(settings.stats, name)
    if settings.stats.is_on:
        orchestrator.observe(telling.session_ended)
    try:
        yield
    finally:
        telling.close()


def _console(processes: list[ProcessPlan]) -> Console:
    return Console(
        stream=sys.stderr,
        clock=time.monotonic,
        name_width=max(len(one.name) for one in processes),
        columns=shutil.get_terminal_size().columns,
    )
