"""The stage file and the stage table: their JSON stays readable for a process of another version of ours."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from omni_contract.api.v1alpha1 import (
    ArEngine,
    DiffusionEngine,
    EngineBlock,
    FakeEngine,
    FrontendLimits,
    GenerationEngine,
    OutputSpec,
)
from omni_contract.wire.stage_file import EdgeEnd, StageFile
from omni_contract.wire.stage_table import StageTable, TableEdge, TableStage

GOLDEN = Path(__file__).with_name("golden")

STAGE_FILE = StageFile(
    model="painter",
    stage="denoiser",
    revision="r1",
    family="qwen-image",
    model_path="/var/lib/omni/volumes/models/qwen-image",
    engine=DiffusionEngine(phases=("denoise",)),
    inputs=(EdgeEnd(edge="text-encoder->denoiser", peer="text-encoder", connector="auto", contract_hash="a1"),),
    outputs=(
        EdgeEnd(
            edge="denoiser->vae-decoder",
            peer="vae-decoder",
            connector="grpc",
            transform="latents",
            retain="terminal",
            contract_hash="b2",
        ),
    ),
    output=OutputSpec(modality="image", final=False),
    max_in_flight=4,
    max_batch_size=2,
    batch_timeout_s=0.5,
    drain_timeout_s=60,
    startup_timeout_s=600,
)

STAGE_TABLE = StageTable(
    model="painter",
    namespace="default",
    revision="r1",
    family="qwen-image",
    served_names=("painter", "qwen-image"),
    stages=(
        TableStage(
            name="denoiser", engine="diffusion", sampling={"steps": 4}, max_in_flight=4, service="painter-denoiser"
        ),
        TableStage(
            name="vae-decoder",
            engine="fake",
            output=OutputSpec(modality="image"),
            max_in_flight=8,
            addresses=("unix:/run/omni/vae-0.sock",),
        ),
    ),
    edges=(TableEdge(source="denoiser", target="vae-decoder", connector="auto", contract_hash="b2"),),
    limits=FrontendLimits(),
    created=1_700_000_000,
)

DOCUMENTS = {"stage-file.json": STAGE_FILE, "stage-table.json": STAGE_TABLE}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_written_with_everything_that_its_golden_file_has(name: str):
    written, golden = (
        json.loads(DOCUMENTS[name].model_dump_json(by_alias=True)),
        json.loads((GOLDEN / name).read_text()),
    )
    assert contains(written, golden)


def contains(whole: Any, part: Any) -> bool:
    """Keys may be added later; none may change or go."""
    if isinstance(part, dict):
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(contains(*pair) for pair in zip(whole, part, strict=True))
    return bool(whole == part)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_golden_file_reads_back_as_the_document(name: str):
    assert read(name, (GOLDEN / name).read_text()) == DOCUMENTS[name]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_another_format_is_refused(name: str):
    document = json.loads((GOLDEN / name).read_text())
    with pytest.raises(ValidationError):
        read(name, json.dumps({**document, "format": 2}))


def test_a_worker_refuses_a_setting_that_it_does_not_know():
    document = json.loads((GOLDEN / "stage-file.json").read_text())
    with pytest.raises(ValidationError):
        read("stage-file.json", json.dumps({**document, "colour": "red"}))


def test_an_older_frontend_reads_a_newer_stage_table():
    table = DOCUMENTS["stage-table.json"]
    document = json.loads((GOLDEN / "stage-table.json").read_text())
    document |= {"colour": "red", "limits": {**document["limits"], "maxColours": 3}}
    document["stages"][0]["colour"] = "blue"
    assert StageTable.read(json.dumps(document)) == table


@pytest.mark.parametrize(
    "engine",
    [ArEngine(), DiffusionEngine(), GenerationEngine(), FakeEngine(), FakeEngine(behavior="crash", crash_at=3)],
    ids=repr,
)
def test_the_engine_block_keeps_its_kind(engine: EngineBlock):
    file = STAGE_FILE.model_copy(update={"engine": engine})
    assert StageFile.model_validate_json(file.model_dump_json(by_alias=True)).engine == engine


def read(name: str, text: str) -> BaseModel:
    return type(DOCUMENTS[name]).model_validate_json(text)
