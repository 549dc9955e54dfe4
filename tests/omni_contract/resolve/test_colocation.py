"""Stages in one pod: their devices, their memory, and why some cannot be together."""

from typing import Any

import pytest

from omni_contract.accelerators import Pool, Vendor, VendorProfile
from omni_contract.api.problems import dotted
from omni_contract.resolve import ResolvedModel, ResolveError, resolve, stage_file
from tests.support.model_files import catalog, spec

NAMES = ("text-encoder", "denoiser", "vae-decoder")
VISIBLE = "CUDA_VISIBLE_DEVICES"
PROFILES = {
    "nvidia": VendorProfile(
        vendor=Vendor.NVIDIA, image="i", resource="nvidia.com/gpu", visible_devices_variable=VISIBLE
    ),
    "xpu": VendorProfile(vendor=Vendor.XPU, image="i", resource="gpu.intel.com/i915"),
    "cpu": VendorProfile(vendor=Vendor.CPU, image="i"),
}
POOLS = {name: Pool(profile=profile) for name, profile in (("h100", "nvidia"), ("arc", "xpu"), ("cpu", "cpu"))}


def model(changes: dict[str, Any] | None = None, **accelerators: dict[str, Any]) -> ResolvedModel:
    """Denoiser and decoder in one pod, on H100s unless a stage's accelerator (by its last word) says otherwise."""
    placed = {
        f"stages[{index}].accelerator": {"pool": "h100", **accelerators.get(name.rpartition("-")[2], {})}
        for index, name in enumerate(NAMES)
    }
    together = {"placement.colocate": [["denoiser", "vae-decoder"]]}
    here = catalog(profiles=PROFILES, pools=POOLS)
    return resolve("painter", "team", spec({**placed, **together, **(changes or {})}), here)


def problems(changes: dict[str, Any] | None = None, **accelerators: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ResolveError) as refused:
        model(changes, **accelerators)
    return {dotted(problem.path): problem.message for problem in refused.value.problems}


def devices(**accelerators: dict[str, Any]) -> tuple[dict[str, tuple[int, ...]], int]:
    (group,) = model(**accelerators).groups
    return dict(group.devices), group.device_count


def test_stages_of_a_group_have_devices_of_their_own_unless_they_say_otherwise() -> None:
    assert devices() == ({"denoiser": (0,), "vae-decoder": (1,)}, 2)
    assert devices(denoiser={"count": 2}) == ({"denoiser": (0, 1), "vae-decoder": (2,)}, 3)


@pytest.mark.parametrize("fractions", [(0.7, 0.3), (0.1, 0.2), (0.6, 0.4)])
def test_stages_that_share_a_device_take_no_more_than_all_of_its_memory(fractions: tuple[float, float]) -> None:
    one, other = ({"devices": [0], "memoryFraction": fraction} for fraction in fractions)
    assert devices(denoiser=one, decoder=other) == ({"denoiser": (0,), "vae-decoder": (0,)}, 1)


def test_the_worker_is_told_its_share_and_nothing_where_it_has_all() -> None:
    resolved = model(denoiser={"memoryFraction": 0.7})
    assert stage_file(resolved, "denoiser", "r1", "/").memory_fraction == 0.7
    assert "memoryFraction" not in stage_file(resolved, "vae-decoder", "r1", "/").model_dump_json(by_alias=True)


def test_one_device_may_be_shared_and_another_not() -> None:
    assert devices(
        denoiser={"devices": [0, 1], "memoryFraction": 0.5}, decoder={"devices": [1], "memoryFraction": 0.5}
    ) == (
        {"denoiser": (0, 1), "vae-decoder": (1,)},
        2,
    )


@pytest.mark.case("runtime:L9", "runtime:L10", "runtime:L12")
def test_more_than_all_of_a_device_s_memory_is_refused_before_anything_starts() -> None:
    one, other = {"devices": [0], "memoryFraction": 0.7}, {"devices": [0], "memoryFraction": 0.4}
    assert problems(denoiser=one, decoder=other) == {
        "spec.stages[2].accelerator.memoryFraction": 'stages "denoiser" and "vae-decoder" share device 0 and take 1.1 '
        "of its memory together; lower memoryFraction, so that they sum to 1 at most, or give one of them another "
        "device"
    }


def test_a_stage_that_shares_a_device_says_how_much_of_it_it_takes() -> None:
    said = problems(denoiser={"devices": [0], "memoryFraction": 0.5}, decoder={"devices": [0]})
    assert list(said) == ["spec.stages[2].accelerator.memoryFraction"]
    assert '"vae-decoder" does not say how much' in said["spec.stages[2].accelerator.memoryFraction"]


def test_stages_in_one_pod_are_scaled_as_one() -> None:
    [(path, message)] = problems({"stages[2].autoscaling": {"maxReplicas": 4}}).items()
    assert path == "spec.stages[2].autoscaling"
    assert '"vae-decoder" shares a pod with "denoiser", but its autoscaling is {' in message
    assert "and not none" in message


def test_stages_in_one_pod_have_equal_replicas_and_one_pool() -> None:
    assert problems({"stages[2].replicas": 2}) == {
        "spec.stages[2].replicas": 'stage "vae-decoder" shares a pod with "denoiser", but its replicas is 2 and not 1; '
        "make them equal, or take one of the two out of placement.colocate"
    }
    assert (
        "its accelerator.pool is cpu and not h100"
        in problems(decoder={"pool": "cpu"})["spec.stages[2].accelerator.pool"]
    )


def test_a_group_names_stages_of_the_family() -> None:
    assert problems({"placement.colocate": [["denoiser", "vae-decoter"]]}) == {
        "spec.placement.colocate[0]": 'stage "vae-decoter" does not exist (did you mean "vae-decoder"?); the stages '
        'are: "text-encoder", "denoiser", "vae-decoder"'
    }


def test_two_admin_ports_of_one_pod_are_different() -> None:
    said = problems({"stages[1].adminPort": 50300, "stages[2].adminPort": 50300})
    assert list(said) == ["spec.stages[2].adminPort"]


@pytest.mark.parametrize("port", [50050, 50061, 50062, 50063, 9091])
def test_an_admin_port_is_none_that_the_pod_needs_itself(port: int) -> None:
    assert list(problems({"stages[1].adminPort": port})) == ["spec.stages[1].adminPort"]
    assert model({"stages[0].adminPort": port}).stage("text-encoder").diagnostics.admin_port == port


def test_a_pool_without_devices_has_nothing_to_share() -> None:
    said = problems(encoder={"pool": "cpu", "memoryFraction": 0.5})
    assert "has no devices, so memoryFraction says nothing" in said["spec.stages[0].accelerator.memoryFraction"]


def test_a_vendor_that_cannot_limit_a_process_to_some_devices_is_refused() -> None:
    said = problems(denoiser={"pool": "arc"}, decoder={"pool": "arc"})
    assert "set visibleDevicesVariable there" in said["spec.stages[1].accelerator.pool"]


def test_auto_is_shared_memory_inside_a_pod_and_not_between_pods() -> None:
    resolved = model()
    assert {edge.name: edge.shares_memory for edge in resolved.edges} == {
        "text-encoder->denoiser": False,
        "denoiser->vae-decoder": True,
    }
    told = {name: [one.name for one in stage_file(resolved, name, "r1", "/").connectors] for name in NAMES}
    assert told == {"text-encoder": [], "denoiser": ["shm"], "vae-decoder": ["shm"]}


def test_a_folder_of_local_mode_means_nothing_in_a_pod() -> None:
    edge = {"from": "denoiser", "to": "vae-decoder", "connector": "fast"}
    fast = {"name": "fast", "shm": {"directory": "/mnt/memory"}}
    (connector,) = model({"edges": [edge], "connectors": [fast]}).connectors
    assert connector.shm is not None
    assert connector.shm.directory is None


@pytest.mark.case("operator:O09")
def test_an_edge_inside_a_pod_may_ask_for_shared_memory_by_name() -> None:
    edge = {"from": "denoiser", "to": "vae-decoder", "connector": "shm"}
    assert model({"edges": [edge]}).edges[1].connector == "shm"
    assert "spec.edges[0].connector" in problems({"edges": [{**edge, "from": "text-encoder", "to": "denoiser"}]})
