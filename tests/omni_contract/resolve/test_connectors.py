"""Connectors with settings: who is told of them, what is filled in, where shared memory is refused."""

import json
from typing import Any

import pytest

from omni_contract.accelerators import Pool
from omni_contract.api.problems import dotted
from omni_contract.api.v1alpha1 import ShmConnector
from omni_contract.resolve import ResolvedModel, ResolveError, resolve, stage_file
from omni_contract.wire.stage_file import StageFile
from tests.support.model_files import catalog, spec

ENCODER_EDGE = {"from": "text-encoder", "to": "denoiser"}
DECODER_EDGE = {"from": "denoiser", "to": "vae-decoder"}
FAST = {"name": "fast", "shm": {"size": "1Gi"}}


def _model(changes: dict[str, Any], stages_share_memory: bool = True) -> ResolvedModel:
    here = catalog(pools={"cpu": Pool(profile="cpu")}, stages_share_memory=stages_share_memory)
    return resolve("painter", "team", spec(changes), here)


def _told(model: ResolvedModel, stage: str) -> dict[str, Any]:
    """The connectors in a stage's file, as its worker reads them."""
    text = stage_file(model, stage, "r1", "/").model_dump_json(by_alias=True)
    return {connector.name: connector.block for connector in StageFile.model_validate_json(text).connectors}


def test_both_ends_of_an_edge_are_told_the_settings_of_its_connector_and_nobody_else() -> None:
    edges = [{**ENCODER_EDGE, "connector": "fast"}, {**DECODER_EDGE, "connector": "grpc"}]
    model = _model({"connectors": [FAST], "edges": edges})

    told = {stage: _told(model, stage) for stage in ("text-encoder", "denoiser", "vae-decoder")}

    fast = {"fast": ShmConnector(size="1Gi")}
    assert told == {"text-encoder": fast, "denoiser": fast, "vae-decoder": {}}


def test_a_kind_that_an_edge_names_has_its_default_settings_or_those_of_its_namesake() -> None:
    edges = [{**ENCODER_EDGE, "connector": "shm"}]

    assert _told(_model({"edges": edges}), "denoiser") == {"shm": ShmConnector()}
    namesake = {"name": "shm", "shm": {"size": "2Gi"}}
    assert _told(_model({"edges": edges, "connectors": [namesake]}), "denoiser") == {"shm": ShmConnector(size="2Gi")}


def test_auto_brings_shared_memory_along_only_where_stages_share_it() -> None:
    assert _told(_model({}), "denoiser") == {"shm": ShmConnector()}
    assert _told(_model({}, stages_share_memory=False), "denoiser") == {}


def test_a_stage_file_without_connectors_is_what_it_was_before_there_were_any() -> None:
    file = stage_file(_model({}, stages_share_memory=False), "denoiser", "r1", "/")

    assert "connectors" not in json.loads(file.model_dump_json(by_alias=True))


@pytest.mark.case("runtime:K2")
@pytest.mark.parametrize(
    ("changes", "path", "name"),
    [
        ({"edges": [DECODER_EDGE, {**ENCODER_EDGE, "connector": "shm"}]}, "spec.edges[1].connector", "shm"),
        (
            {"edges": [{**ENCODER_EDGE, "connector": "fast"}], "connectors": [FAST]},
            "spec.edges[0].connector",
            "fast",
        ),
    ],
)
def test_shared_memory_is_refused_between_pods(changes: dict[str, Any], path: str, name: str) -> None:
    with pytest.raises(ResolveError) as refused:
        _model(changes, stages_share_memory=False)

    assert {dotted(problem.path): problem.message for problem in refused.value.problems} == {
        path: f'edge "text-encoder->denoiser" uses connector "{name}", which is shared memory, but the two stages '
        "run in different pods; use auto or grpc, or add them to placement.colocate"
    }


def test_an_unused_connector_of_shared_memory_disturbs_no_pod() -> None:
    assert _model({"connectors": [FAST]}, stages_share_memory=False).connectors == ()


def test_an_unused_store_starts_nothing_and_disturbs_no_pod() -> None:
    store = {"name": "store", "mooncakeStore": {"managed": True}}
    assert _model({"connectors": [store]}, stages_share_memory=False).connectors == ()


def test_each_stage_is_told_its_own_ports() -> None:
    engine = {"name": "engine", "mooncakeTransferEngine": {"firstPort": 20_000}}
    model = _model({"edges": [{**ENCODER_EDGE, "connector": "engine"}], "connectors": [engine]})

    ports = [_told(model, stage)["engine"].first_port for stage in ("text-encoder", "denoiser")]

    assert ports == [20_000, 20_128]
