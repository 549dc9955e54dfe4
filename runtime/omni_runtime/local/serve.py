"""`omni serve` from settings to exit code: read the model, resolve it for this machine, plan, write, run."""

import asyncio
import shutil
import socket
import sys
import time
from contextlib import closing
from os import getuid
from pathlib import Path

from omni_contract.api.v1alpha1.resource import OmniModel
from omni_contract.resolve import resolve
from omni_contract.resolve.resolved import ResolvedModel
from omni_runtime.connectors.shm.folder import sweep
from omni_runtime.local.banner import banner
from omni_runtime.local.catalog import local_catalog, only, without_pools
from omni_runtime.local.console import Console
from omni_runtime.local.devices import Machine, find_devices
from omni_runtime.local.errors import InputError
from omni_runtime.local.first_picture import save_first_picture
from omni_runtime.local.masters import LOOPBACK, with_masters
from omni_runtime.local.model_file import model_of
from omni_runtime.local.plan import LocalPlan, Place
from omni_runtime.local.runtime_directory import runtime_directory, runtime_root
from omni_runtime.local.settings import ServeSettings
from omni_runtime.local.supervisor import Supervisor
from omni_runtime.local.volumes import check_source, parse_volumes
from omni_runtime.worker.settings import DEFAULT_SHARED_MEMORY

NAMESPACE = "default"


def serve(settings: ServeSettings) -> int:
    """Runs until it is stopped; returns the exit code. Raises ServeError or InvalidModelError."""
    volumes = parse_volumes(settings.volumes)
    machine = machine_for(settings)
    model = resolve_here(model_of(settings, _say), machine, settings)
    check_source(model, volumes)
    _check_api_keys(model, settings.api_keys)
    port = free_port(settings.host, settings.port)
    with runtime_directory(runtime_root(settings.environment.get("XDG_RUNTIME_DIR"), getuid())) as directory:
        place = Place(
            directory=directory,
            host=settings.host,
            port=port,
            machine=machine,
            volumes=volumes,
            created=settings.created,
            api_keys=settings.api_keys,
            trace_dir=settings.trace_dir,
            log_level=settings.log_level,
            profile_dir=settings.profile_dir,
            stats=settings.stats,
            media=settings.media,
            admin_port=settings.admin_port,
        )
        plan = with_masters(model, place, lambda: free_port(LOOPBACK, 0))
        _check_picture(plan, settings.picture)
        write_plan(plan)
        try:
            return asyncio.run(_run(plan, settings))
        finally:
            # Of children that had to be killed.
            sweep(DEFAULT_SHARED_MEMORY)


def _say(text: str) -> None:
    sys.stderr.write(f"omni serve: {text}\n")


def free_port(host: str, port: int) -> int:
    """The port if nobody listens on it, a free one for 0; raises InputError otherwise."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as exc:
            raise InputError(f"cannot listen on {host}:{port}: {exc.strerror}; choose another with --port") from exc
        return int(probe.getsockname()[1])


def machine_for(settings: ServeSettings) -> Machine:
    """This one, as far as the settings let the model see of it."""
    machine = find_devices(Path("/dev"), settings.environment)
    return machine if settings.device is None else only(settings.device, machine)


def resolve_here(file: OmniModel, machine: Machine, settings: ServeSettings) -> ResolvedModel:
    spec = file.spec if settings.device is None else without_pools(file.spec)
    catalog = local_catalog(spec, machine, settings.allow_fake_engine)
    return resolve(file.metadata.name, file.metadata.namespace or NAMESPACE, spec, catalog)


def _check_api_keys(model: ResolvedModel, api_keys: Path | None) -> None:
    """A model that asks for keys is never served open."""
    secret = model.frontend.auth.api_keys_secret_ref
    if secret is not None and api_keys is None:
        raise InputError(f'the model takes its API keys from Secret "{secret.name}"; give them with --api-keys DIR')


def _check_picture(plan: LocalPlan, picture: Path | None) -> None:
    if picture is not None and "image" not in plan.modalities:
        answers = ", ".join(plan.modalities)
        raise InputError(f"--picture asks for an image, and {plan.model} answers with {answers}; leave it out")


def write_plan(plan: LocalPlan) -> None:
    """Everything that its processes read."""
    for path, text in plan.files.items():
        path.write_text(text)
    for link, folder in plan.links.items():
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(folder, target_is_directory=True)


async def _run(plan: LocalPlan, settings: ServeSettings) -> int:
    names = [process.name for process in plan.processes]
    console = Console(
        stream=sys.stderr,
        clock=time.monotonic,
        name_width=max(map(len, names)),
        is_terminal=settings.is_terminal,
        columns=shutil.get_terminal_size().columns,
        log_json=settings.log_json,
    )

    async def when_ready() -> None:
        if settings.picture is not None:
            await save_first_picture(plan, settings.picture, settings.api_keys)
            console.say(f"saved {settings.picture}")
        sys.stdout.write(banner(plan, needs_key=settings.api_keys is not None))
        sys.stdout.flush()

    return await Supervisor(plan, settings.environment, console, when_ready).run()
