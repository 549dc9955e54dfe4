"""Masters of managed stores: who gets one, whose image it runs on, what stages are told."""

from typing import Any

import pytest

from omni_contract.resolve import ResolvedModel, device_of_master, managed_stores, resolve, stage_file, with_masters_at
from tests.support.model_files import catalog, spec

STORE = {"name": "store", "mooncakeStore": {"managed": True}}
FOREIGN = {"name": "other", "mooncakeStore": {"master": "10.0.0.1:50051"}}
ENCODER_EDGE = {"from": "text-encoder", "to": "denoiser", "connector": "store"}
DECODER_EDGE = {"from": "denoiser", "to": "vae-decoder", "connector": "other"}


def model(pools: tuple[str, str, str] = ("cpu", "cpu", "cpu"), **changes: Any) -> ResolvedModel:
    placed = {f"stages[{index}].accelerator.pool": pool for index, pool in enumerate(pools)}
    wanted = {"connectors": [STORE, FOREIGN], "edges": [ENCODER_EDGE, DECODER_EDGE], **changes}
    return resolve("painter", "team", spec({**wanted, **placed}), catalog())


def test_a_store_gets_a_master_if_it_is_managed_and_in_use() -> None:
    assert managed_stores(model()) == ("store",)
    assert managed_stores(model(edges=[DECODER_EDGE])) == ()


def test_stages_are_told_where_the_master_is_and_other_stores_stay_as_they_are() -> None:
    told = with_masters_at(model(), {"store": "painter-store.team.svc:50051"})
    file = stage_file(told, "denoiser", "r1", "/")
    stores = {connector.name: connector.mooncake_store for connector in file.connectors}
    assert {name: store and (store.managed, store.master) for name, store in stores.items()} == {
        "store": (False, "painter-store.team.svc:50051"),
        "other": (False, "10.0.0.1:50051"),
    }


@pytest.mark.parametrize(
    ("pools", "image"),
    [
        (("h100", "mi300", "cpu"), "runtime-cuda:1"),
        (("h100", "cpu", "mi300"), "runtime-cpu:1"),
        (("cpu", "h100", "mi300"), "runtime-cpu:1"),
    ],
    ids=["the first stage that uses the store", "a stage on the CPU before others", "the first stage, on the CPU"],
)
def test_a_master_runs_on_the_image_of_a_stage_that_uses_the_store(pools: tuple[str, str, str], image: str) -> None:
    assert device_of_master(model(pools), "store").image == image
