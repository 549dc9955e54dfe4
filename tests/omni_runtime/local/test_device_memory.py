"""Stages that share a device may ask for all of its memory and for no more; who asks for how much is told."""

from dataclasses import replace

import pytest

from omni_contract.accelerators import Vendor
from omni_contract.api.v1alpha1 import ArEngine, DiffusionEngine, EngineBlock
from omni_runtime.local.device_memory import Given, check_device_memory
from omni_runtime.local.devices import Machine
from omni_runtime.local.errors import InputError
from omni_runtime.local.plan import local_plan
from tests.omni_runtime.local.test_plan import place
from tests.support.local_models import example_model


def given(name: str, engine: EngineBlock | float, devices: str, vendor: Vendor = Vendor.NVIDIA) -> Given:
    """A stage on the devices with these one-letter names; a number is the share of a language model."""
    block = ArEngine(memory_utilization=engine) if isinstance(engine, float) else engine
    stage = example_model().stages[0]
    device = replace(stage.device, vendor=vendor, count=len(devices))
    return Given(replace(stage, name=name, engine=block, device=device), 0, tuple(devices))


@pytest.mark.parametrize(
    "sharing",
    [
        [given("thinker", 0.6, "01"), given("talker", 0.3, "1"), given("vocoder", 0.1, "0")],
        [given("thinker", 0.7, "0"), given("talker", 0.2, "0"), given("vocoder", 0.1, "0")],
        [given("thinker", 1.0, "0"), given("talker", 1.0, "1")],
        [given("thinker", 0.9, "0"), given("painter", DiffusionEngine(), "0")],
        [given("thinker", 0.9, "0"), given("talker", 0.9, "0", Vendor.ROCM)],
        [given("thinker", 0.9, "", Vendor.CPU), given("talker", 0.9, "", Vendor.CPU)],
    ],
    ids=["two devices", "all of one", "a device each", "an engine that takes what it needs", "two vendors", "the CPU"],
)
def test_what_fits_is_let_in(sharing: list[Given]) -> None:
    check_device_memory(sharing)


@pytest.mark.case("runtime:L9", "runtime:L10")
def test_stages_that_ask_for_more_than_a_device_has_are_refused_by_device_and_name() -> None:
    sharing = [given("thinker", 0.8, "01"), given("talker", 0.15, "0"), given("vocoder", 0.3, "1")]
    with pytest.raises(InputError) as refused:
        check_device_memory(sharing)
    assert str(refused.value) == (
        'nvidia device 1 is shared by stages that ask for 1.1 of its memory: "thinker" 0.8, "vocoder" 0.3; lower their '
        "memoryUtilization or accelerator.memoryFraction to 1 in all, start fewer replicas, or show more devices"
    )


@pytest.mark.case("runtime:L9")
def test_nothing_is_planned_for_a_machine_whose_device_is_asked_for_twice() -> None:
    model, thinker = example_model(), given("thinker", 0.6, "0").stage
    stages = (replace(thinker, replicas=2),)
    with pytest.raises(InputError, match=r'"thinker" 0\.6, "thinker" 0\.6'):
        local_plan(replace(model, stages=stages, edges=()), place(machine=Machine({Vendor.NVIDIA: ("0",)})))
