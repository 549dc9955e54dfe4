"""Every file in examples/ is sound and means what its comment says. Running them is the matter of other levels."""

from pathlib import Path

import pytest

from omni_contract.accelerators import AcceleratorCatalog, Pool, Vendor, VendorProfile
from omni_contract.api.load import load_model
from omni_contract.cli import main
from omni_contract.resolve import ResolvedModel, managed_stores, resolve
from tests.support.model_files import catalog

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
CPU_ONLY = catalog(pools={"cpu": Pool(profile="cpu")})
NVIDIA = VendorProfile(
    vendor=Vendor.NVIDIA,
    image="runtime-cuda:1",
    resource="nvidia.com/gpu",
    visible_devices_variable="CUDA_VISIBLE_DEVICES",
)
ALL_VENDORS = catalog(pools={name: Pool(profile=name) for name in ("nvidia", "rocm", "ascend")})


def _example(name: str, pools: AcceleratorCatalog) -> ResolvedModel:
    model = load_model(next(path for path in EXAMPLES if path.name == name))
    return resolve(model.metadata.name, "default", model.spec, pools)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_omni_validate_finds_nothing_wrong_with_an_example(path: Path) -> None:
    assert main(["validate", str(path)]) == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_says_at_its_top_how_it_is_used(path: Path) -> None:
    text = path.read_text()

    assert text.startswith("# ")
    assert f"examples/{path.name}" in text.partition("apiVersion")[0]


def test_the_tiny_model_runs_as_three_stages_on_cpus() -> None:
    model = _example("tiny-qwen-image.yaml", CPU_ONLY)

    assert [(stage.name, stage.device.vendor) for stage in model.stages] == [
        ("text-encoder", Vendor.CPU),
        ("denoiser", Vendor.CPU),
        ("vae-decoder", Vendor.CPU),
    ]


def test_the_fused_model_runs_as_one_stage_from_the_same_checkpoint() -> None:
    fused, split = _example("tiny-qwen-image-fused.yaml", CPU_ONLY), _example("tiny-qwen-image.yaml", CPU_ONLY)

    assert [stage.name for stage in fused.stages] == ["picture"]
    assert fused.edges == ()
    assert fused.source == split.source
    assert fused.stages[0].sampling == split.stages[0].sampling


def test_the_model_over_a_store_has_its_master_started() -> None:
    assert managed_stores(_example("tiny-qwen-image-store.yaml", CPU_ONLY)) == ("store",)


def test_the_model_in_one_pod_has_two_stages_on_one_device() -> None:
    pools = catalog(
        profiles={"nvidia": NVIDIA},
        pools={"nvidia": Pool(profile="nvidia")},
    )
    (group,) = _example("qwen-image-one-pod.yaml", pools).groups

    assert group.stages == ("denoiser", "vae-decoder")
    assert group.device_count == 1


@pytest.mark.case("operator:E11")
def test_the_mixed_model_puts_each_stage_on_another_vendor() -> None:
    model = _example("qwen-image-mixed-vendors.yaml", ALL_VENDORS)

    assert [(stage.device.vendor, stage.device.resource, stage.device.count) for stage in model.stages] == [
        (Vendor.ASCEND, "huawei.com/Ascend910", 1),
        (Vendor.NVIDIA, "nvidia.com/gpu", 1),
        (Vendor.ROCM, "amd.com/gpu", 1),
    ]
    assert {edge.connector for edge in model.edges} == {"grpc"}


@pytest.mark.parametrize("family", ["qwen2.5-omni", "qwen3-omni"])
def test_an_omni_model_speaks_from_its_last_stage_and_writes_from_its_first(family: str) -> None:
    model = _example(f"tiny-{family}.yaml", CPU_ONLY)

    assert {stage.name: stage.output.modality for stage in model.stages if stage.output} == {
        "thinker": "text",
        "code2wav": "audio",
    }
    assert [edge.name for edge in model.edges] == ["thinker->talker", "talker->code2wav"]
    assert model.stage("thinker").sampling["max_tokens"] == 32
    assert model.stage("talker").sampling["temperature"] == 0.9


def test_the_omni_model_in_two_pods_is_the_same_model_placed_otherwise() -> None:
    three, two = _example("tiny-qwen2.5-omni.yaml", CPU_ONLY), _example("tiny-qwen2.5-omni-two-pods.yaml", CPU_ONLY)

    assert two.stages == three.stages
    assert [group.stages for group in two.groups] == [("talker", "code2wav")]
    assert [(edge.name, edge.shares_memory) for edge in two.edges] == [
        ("thinker->talker", False),
        ("talker->code2wav", True),
    ]
