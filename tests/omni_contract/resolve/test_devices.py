from typing import Any

import pytest

from omni_contract.accelerators import ClaimMount, Pool, Vendor, VendorProfile
from omni_contract.api.problems import dotted
from omni_contract.api.v1alpha1 import StageSpec
from omni_contract.resolve.devices import device, device_problems
from tests.support.model_files import catalog

PATH = ("spec", "stages", 0)


def _stage(**accelerator: Any) -> StageSpec:
    return StageSpec.model_validate({"name": "denoiser", "accelerator": accelerator})


def _told(stage: StageSpec, pools: Any = None) -> dict[str, str]:
    return {dotted(problem.path): problem.message for problem in device_problems(stage, PATH, pools or catalog())}


def test_a_pool_says_where_and_its_profile_how() -> None:
    found = device(_stage(pool="h100", count=2), catalog())

    assert (found.vendor, found.image, found.resource, found.count) == (
        Vendor.NVIDIA,
        "runtime-cuda:1",
        "nvidia.com/gpu",
        2,
    )
    assert found.node_selector == {"accelerator": "h100"}
    assert found.tolerations[0].key == "nvidia.com/gpu"


@pytest.mark.parametrize(("pool", "count"), [("h100", 1), ("cpu", 0)])
def test_a_stage_gets_one_device_unless_it_says_otherwise(pool: str, count: int) -> None:
    assert device(_stage(pool=pool), catalog()).count == count


@pytest.mark.case("operator:E14")
def test_what_the_pool_says_wins_over_its_profile() -> None:
    pools = catalog(
        profiles={
            "nvidia": VendorProfile(
                vendor=Vendor.NVIDIA,
                image="cuda:1",
                resource="nvidia.com/gpu",
                env={"A": "1", "B": "1"},
                mounts=(ClaimMount(claim="code", mount_path="/code"), ClaimMount(claim="env", mount_path="/env")),
                startup_factor=2,
            )
        },
        pools={
            "mig": Pool(
                profile="nvidia",
                image="cuda:2",
                resource="nvidia.com/mig-1g",
                env={"B": "2"},
                mounts=(ClaimMount(claim="env-2", mount_path="/env"),),
                runtime_class_name="nvidia",
            )
        },
    )

    found = device(_stage(pool="mig"), pools)

    assert (found.image, found.resource, found.runtime_class_name) == ("cuda:2", "nvidia.com/mig-1g", "nvidia")
    assert found.env == {"A": "1", "B": "2"}
    assert [mount.claim for mount in found.mounts] == ["code", "env-2"]
    assert found.startup_factor == 2


def test_where_there_is_only_one_pool_it_need_not_be_named() -> None:
    assert device(_stage(), catalog(pools={"only": Pool(profile="cpu")})).pool == "only"


@pytest.mark.case("operator:E13")
def test_a_vendor_without_an_image_is_refused_and_never_becomes_cpu() -> None:
    assert _told(_stage(pool="arc")) == {
        "spec.stages[0].accelerator.pool": 'pool "arc" has vendor "xpu", for which no runtime image is set; a stage '
        "never falls back to CPU, so set accelerators.profiles.xpu.image in the chart's values or choose another pool"
    }


@pytest.mark.parametrize(
    ("accelerator", "path", "message"),
    [
        (
            {"pool": "h10"},
            "spec.stages[0].accelerator.pool",
            'stage "denoiser" asks for pool "h10", which does not exist here (did you mean "h100"?); the pools are: '
            '"arc", "ascend910", "cpu", "h100", "mi300"',
        ),
        (
            {},
            "spec.stages[0].accelerator",
            'stage "denoiser" names no accelerator pool; set accelerator.pool to one of: "arc", "ascend910", "cpu", '
            '"h100", "mi300"',
        ),
        (
            {"pool": "cpu", "count": 1},
            "spec.stages[0].accelerator.count",
            'pool "cpu" has no devices, but count is 1; remove count',
        ),
        (
            {"pool": "h100", "count": 0},
            "spec.stages[0].accelerator.count",
            'pool "h100" is for stages that use devices, but count is 0; set count to 1 or more, or choose a CPU pool',
        ),
    ],
)
def test_what_the_cluster_cannot_give_is_refused(accelerator: dict[str, Any], path: str, message: str) -> None:
    assert _told(_stage(**accelerator)) == {path: message}


def test_a_cluster_without_pools_says_so() -> None:
    (message,) = _told(_stage(pool="h100"), catalog(pools={})).values()

    assert message.endswith("the pools are: none")
