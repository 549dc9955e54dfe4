from typing import Any

import pytest
from pydantic import ValidationError

from omni_contract.accelerators import AcceleratorCatalog, Vendor

VALUES: dict[str, Any] = {
    "profiles": {
        "nvidia": {"vendor": "nvidia", "image": "runtime-cuda:1", "resource": "nvidia.com/gpu"},
        "cpu": {"vendor": "cpu", "image": "runtime-cpu:1"},
    },
    "pools": {"h100": {"profile": "nvidia", "nodeSelector": {"gpu": "h100"}}, "cpu": {"profile": "cpu"}},
}


def test_the_charts_values_are_read_as_they_stand() -> None:
    read = AcceleratorCatalog.model_validate(VALUES)

    assert read.pools["h100"].node_selector == {"gpu": "h100"}
    assert read.profiles["nvidia"].vendor is Vendor.NVIDIA
    assert not read.allow_fake_engine


def test_a_profile_without_an_image_may_stand_there_until_it_is_used() -> None:
    xpu = {
        "profiles": {"xpu": {"vendor": "xpu", "resource": "gpu.intel.com/i915"}},
        "pools": {"arc": {"profile": "xpu"}},
    }

    assert AcceleratorCatalog.model_validate(xpu).profiles["xpu"].image is None


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        (
            {"h100": {"profile": "nvidai"}},
            'pool "h100" names profile "nvidai", which does not exist; there are: cpu, nvidia',
        ),
        (
            {"cpu": {"profile": "cpu", "resource": "nvidia.com/gpu"}},
            'pool "cpu": vendor "cpu" has no devices, but its resource is "nvidia.com/gpu"; remove it',
        ),
    ],
)
def test_pools_that_cannot_work_are_refused_at_start(pools: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        AcceleratorCatalog.model_validate(VALUES | {"pools": pools})


def test_devices_need_a_resource_by_which_pods_ask_for_them() -> None:
    profiles = {"rocm": {"vendor": "rocm", "image": "runtime-rocm:1"}}

    with pytest.raises(ValidationError, match='pool "mi300": vendor "rocm" needs a resource'):
        AcceleratorCatalog.model_validate({"profiles": profiles, "pools": {"mi300": {"profile": "rocm"}}})


def test_a_pool_may_bring_the_resource_that_its_profile_lacks() -> None:
    profiles = {"rocm": {"vendor": "rocm", "image": "runtime-rocm:1"}}
    pools = {"mi300": {"profile": "rocm", "resource": "amd.com/gpu"}}

    assert AcceleratorCatalog.model_validate({"profiles": profiles, "pools": pools}).pools["mi300"].resource


@pytest.mark.parametrize("key", ["vendr", "node_selectors"])
def test_unknown_keys_are_refused(key: str) -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        AcceleratorCatalog.model_validate(VALUES | {"pools": {"h100": {"profile": "nvidia", key: "x"}}})


@pytest.mark.case("operator:H13")
@pytest.mark.parametrize(
    "profile",
    [
        {"env": {"1ST": "x"}},
        {"env": {"A-B": "x"}},
        {"mounts": [{"claim": "Driver", "mountPath": "/driver"}]},
        {"mounts": [{"claim": "driver", "mountPath": "driver"}]},
        {"resource": "gpu"},
        {"image": "runtime cuda"},
        {"visibleDevicesVariable": "CUDA VISIBLE"},
        {"startupFactor": 0.5},
    ],
    ids=str,
)
def test_values_that_no_pod_could_have_are_refused_at_start(profile: dict[str, Any]) -> None:
    profiles = {"nvidia": VALUES["profiles"]["nvidia"] | profile}

    with pytest.raises(ValidationError):
        AcceleratorCatalog.model_validate({"profiles": profiles, "pools": {}})


def test_a_pool_name_that_no_model_could_say_is_refused() -> None:
    with pytest.raises(ValidationError):
        AcceleratorCatalog.model_validate(VALUES | {"pools": {"H100": {"profile": "nvidia"}}})
