"""Where a stage runs: its pool from the catalog, merged over the pool's vendor profile."""

from omni_contract.accelerators import AcceleratorCatalog, ClaimMount, Pool, Vendor, VendorProfile
from omni_contract.api.nearest import did_you_mean
from omni_contract.api.problems import Path, Problem
from omni_contract.api.v1alpha1 import StageSpec
from omni_contract.resolve.resolved import ResolvedDevice


def device(stage: StageSpec, catalog: AcceleratorCatalog) -> ResolvedDevice:
    """The stage's device, once `device_problems` has found nothing wrong with it."""
    name = _pool_name(stage, catalog)
    pool = catalog.pools[name]
    profile = catalog.profiles[pool.profile]
    return ResolvedDevice(
        pool=name,
        vendor=profile.vendor,
        image=pool.image or profile.image or "",
        command=profile.command,
        resource=pool.resource or profile.resource,
        count=_count(stage, profile.vendor),
        env={**profile.env, **pool.env},
        mounts=_mounts(profile, pool),
        node_selector=pool.node_selector,
        tolerations=pool.tolerations,
        runtime_class_name=pool.runtime_class_name,
        startup_factor=profile.startup_factor,
    )


def visible_devices_variable(stage: StageSpec, catalog: AcceleratorCatalog) -> str | None:
    """What limits a process to some of its pod's devices."""
    return catalog.profiles[catalog.pools[_pool_name(stage, catalog)].profile].visible_devices_variable


def device_problems(stage: StageSpec, path: Path, catalog: AcceleratorCatalog) -> list[Problem]:
    """Why the catalog cannot give the stage its device. There is no fall-back to CPU."""
    path = (*path, "accelerator")
    name = _pool_name(stage, catalog)
    pool = catalog.pools.get(name)
    if pool is None:
        return [_unknown_pool(stage, name, path, catalog)]
    profile = catalog.profiles[pool.profile]
    problems = _count_problems(stage, name, profile.vendor, path)
    if not (pool.image or profile.image):
        problems.append(_no_image(name, pool, profile, path))
    return problems


def _count(stage: StageSpec, vendor: Vendor) -> int:
    if stage.accelerator.devices is not None:
        return len(stage.accelerator.devices)
    return int(vendor.has_devices) if stage.accelerator.count is None else stage.accelerator.count


def _pool_name(stage: StageSpec, catalog: AcceleratorCatalog) -> str:
    """The pool asked for, else the only one there is, else ""."""
    only = next(iter(catalog.pools)) if len(catalog.pools) == 1 else ""
    return stage.accelerator.pool or only


def _unknown_pool(stage: StageSpec, name: str, path: Path, catalog: AcceleratorCatalog) -> Problem:
    known = ", ".join(f'"{pool}"' for pool in sorted(catalog.pools)) or "none"
    if not name:
        return Problem(path, f'stage "{stage.name}" names no accelerator pool; set accelerator.pool to one of: {known}')
    hint = did_you_mean(name, catalog.pools)
    return Problem(
        (*path, "pool"),
        f'stage "{stage.name}" asks for pool "{name}", which does not exist here{hint}; the pools are: {known}',
    )


def _no_image(name: str, pool: Pool, profile: VendorProfile, path: Path) -> Problem:
    return Problem(
        (*path, "pool"),
        f'pool "{name}" has vendor "{profile.vendor}", for which no runtime image is set; a stage never falls back '
        f"to CPU, so set accelerators.profiles.{pool.profile}.image in the chart's values or choose another pool",
    )


def _count_problems(stage: StageSpec, name: str, vendor: Vendor, path: Path) -> list[Problem]:
    count = stage.accelerator.count
    if count and not vendor.has_devices:
        return [Problem((*path, "count"), f'pool "{name}" has no devices, but count is {count}; remove count')]
    if count == 0 and vendor.has_devices:
        way_out = "set count to 1 or more, or choose a CPU pool"
        return [Problem((*path, "count"), f'pool "{name}" is for stages that use devices, but count is 0; {way_out}')]
    return []


def _mounts(profile: VendorProfile, pool: Pool) -> tuple[ClaimMount, ...]:
    by_path = {mount.mount_path: mount for mount in (*profile.mounts, *pool.mounts)}
    return tuple(by_path.values())
