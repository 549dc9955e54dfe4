import pytest

from omni_contract.accelerators import Vendor
from omni_contract.api.v1alpha1 import ModelSource, OmniModelSpec, StageSpec
from omni_contract.api.v1alpha1.stage import AcceleratorSpec
from omni_runtime.local.catalog import local_catalog, only, without_pools
from omni_runtime.local.devices import Machine
from omni_runtime.local.errors import InputError

CPU_ONLY = Machine({})
ONE_GPU = Machine({Vendor.NVIDIA: ("0",)})


def spec(*pools: str | None, count: int | None = None) -> OmniModelSpec:
    stages = tuple(
        StageSpec(name=f"stage-{index}", accelerator=AcceleratorSpec(pool=pool, count=count))
        for index, pool in enumerate(pools)
    )
    return OmniModelSpec(model=ModelSource(source="pvc://models/m"), stages=stages)


def vendors(spec: OmniModelSpec, machine: Machine) -> dict[str, str]:
    catalog = local_catalog(spec, machine, allow_fake_engine=False)
    return {name: pool.profile for name, pool in catalog.pools.items()}


def test_a_cpu_pool_is_on_every_machine() -> None:
    assert vendors(spec("cpu"), CPU_ONLY) == {"cpu": "cpu"}
    assert vendors(spec("cpu"), ONE_GPU) == {"cpu": "cpu"}


def test_a_pool_of_any_other_name_is_this_machines_accelerator() -> None:
    assert vendors(spec("h100", "cpu"), ONE_GPU) == {"cpu": "cpu", "h100": "nvidia"}


def test_a_model_without_pools_gets_the_best_device() -> None:
    assert vendors(spec(None), ONE_GPU) == {"nvidia": "nvidia"}
    assert vendors(spec(None), CPU_ONLY) == {"cpu": "cpu"}


@pytest.mark.parametrize(("pool", "machine"), [("h100", CPU_ONLY), ("rocm", ONE_GPU)])
@pytest.mark.case("operator:E13")
def test_a_pool_that_is_not_here_is_refused_with_the_way_out(pool: str, machine: Machine) -> None:
    with pytest.raises(
        InputError, match=rf'pool "{pool}": this machine has .*cpu; run it on the CPU with --device cpu'
    ):
        local_catalog(spec(pool), machine, allow_fake_engine=False)


def test_a_device_that_is_not_here_is_refused() -> None:
    with pytest.raises(InputError, match="--device nvidia: this machine has cpu"):
        only(Vendor.NVIDIA, CPU_ONLY)


def test_a_chosen_device_overrides_pools_and_counts_of_the_file() -> None:
    moved = without_pools(spec("h100", "mi300", count=2))
    assert [stage.accelerator for stage in moved.stages] == [AcceleratorSpec(), AcceleratorSpec()]
    assert vendors(moved, only(Vendor.CPU, ONE_GPU)) == {"cpu": "cpu"}


@pytest.mark.parametrize("allowed", [False, True])
def test_fake_engines_are_allowed_only_when_asked(allowed: bool) -> None:
    assert local_catalog(spec("cpu"), CPU_ONLY, allowed).allow_fake_engine is allowed
