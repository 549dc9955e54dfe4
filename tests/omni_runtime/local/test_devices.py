from pathlib import Path

import pytest

from omni_contract.accelerators import Vendor
from omni_runtime.local.devices import find_devices


def device_files(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def test_a_machine_without_device_files_has_only_its_cpu(tmp_path: Path) -> None:
    machine = find_devices(tmp_path, {})
    assert machine.vendors == (Vendor.CPU,)
    assert machine.accelerator is None


@pytest.mark.parametrize(
    ("files", "vendor", "devices"),
    [
        (("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"), Vendor.NVIDIA, ("0", "1")),
        (("kfd", "dri/renderD128", "dri/card0"), Vendor.ROCM, ("0",)),
        (("davinci0", "davinci7", "davinci_manager"), Vendor.ASCEND, ("0", "1")),
    ],
)
def test_devices_are_found_by_their_vendors_device_files(
    tmp_path: Path, files: tuple[str, ...], vendor: Vendor, devices: tuple[str, ...]
) -> None:
    machine = find_devices(device_files(tmp_path, *files), {})
    assert machine.accelerator is vendor
    assert machine.devices[vendor] == devices


def test_a_render_node_alone_is_no_rocm_device(tmp_path: Path) -> None:
    assert find_devices(device_files(tmp_path, "dri/renderD128"), {}).vendors == (Vendor.CPU,)


def test_device_numbers_are_logical_under_an_existing_limit(tmp_path: Path) -> None:
    files = device_files(tmp_path, "nvidia0", "nvidia1", "nvidia2", "nvidia3")
    machine = find_devices(files, {"CUDA_VISIBLE_DEVICES": "2, 3"})
    assert machine.devices[Vendor.NVIDIA] == ("2", "3")


def test_a_limit_to_nothing_hides_the_vendor(tmp_path: Path) -> None:
    files = device_files(tmp_path, "nvidia0")
    assert find_devices(files, {"CUDA_VISIBLE_DEVICES": ""}).vendors == (Vendor.CPU,)
