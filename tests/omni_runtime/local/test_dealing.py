"""Devices of this machine, dealt out to stages: in turn, in groups, and never more of one than there is."""

from dataclasses import replace

import pytest

from omni_contract.accelerators import Vendor
from omni_contract.resolve import ResolvedGroup, ResolvedModel
from omni_runtime.local.dealing import deal
from omni_runtime.local.devices import Machine
from omni_runtime.local.errors import InputError
from tests.support.local_models import CPU_ONLY, example_model

TWO = Machine({Vendor.NVIDIA: ("4", "5")})
ONE = Machine({Vendor.NVIDIA: ("4",)})
PAIR = ResolvedGroup(("denoiser", "vae-decoder"), {"denoiser": (0,), "vae-decoder": (0,)}, None)


def on_gpus(*fractions: float | None, group: ResolvedGroup | None = None) -> ResolvedModel:
    """The example on a GPU each, of whose memory the stages take these fractions."""
    model = example_model()
    shares = (*fractions, *(None for _ in model.stages[len(fractions) :]))
    stages = tuple(
        replace(stage, device=replace(stage.device, vendor=Vendor.NVIDIA, count=1), memory_fraction=fraction)
        for stage, fraction in zip(model.stages, shares, strict=True)
    )
    return replace(model, stages=stages, groups=() if group is None else (group,))


def devices(model: ResolvedModel, machine: Machine) -> list[tuple[str, ...]]:
    return [tuple(one.devices) for one in deal(model, machine)]


def test_devices_are_dealt_in_turn_and_shared_where_there_are_too_few() -> None:
    assert devices(on_gpus(), TWO) == [("4",), ("5",), ("4",)]
    assert devices(example_model(), CPU_ONLY) == [(), (), ()]


def test_stages_of_one_pod_get_its_devices_as_they_would_share_them_there() -> None:
    assert devices(on_gpus(group=PAIR), TWO) == [("4",), ("5",), ("5",)]


@pytest.mark.parametrize("fractions", [(0.5, 0.3, 0.2), (None, None, None), (1.0, None, None)])
def test_stages_may_share_a_device_of_which_they_do_not_take_too_much(fractions: tuple[float | None, ...]) -> None:
    assert devices(on_gpus(*fractions), ONE) == [("4",)] * 3


def test_fractions_count_like_what_a_language_model_asks_for() -> None:
    with pytest.raises(InputError, match=r'"text-encoder" 0\.5, "denoiser" 0\.3, "vae-decoder" 0\.4'):
        deal(on_gpus(0.5, 0.3, 0.4), ONE)
    assert len(deal(on_gpus(0.5, 0.3, 0.4), TWO)) == 3
