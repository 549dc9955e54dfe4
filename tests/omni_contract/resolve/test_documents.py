from typing import Any

import pytest

from omni_contract.accelerators import Pool
from omni_contract.api.v1alpha1 import StreamingSpec
from omni_contract.resolve import ResolvedModel, StageLocation, resolve, stage_file, stage_revision, stage_table
from omni_contract.wire.stage_file import StageFile
from omni_contract.wire.stage_table import StageTable
from tests.support.model_files import catalog, fake_spec, spec

STAGES = ("text-encoder", "denoiser", "vae-decoder")


def _model(changes: dict[str, Any] | None = None, **pool: Any) -> ResolvedModel:
    pools = catalog(pools={"cpu": Pool(**({"profile": "cpu"} | pool))}, allow_fake_engine=True)
    return resolve("painter", "team", spec(changes), pools)


def _revisions(model: ResolvedModel) -> dict[str, str]:
    return {name: stage_revision(model, name) for name in STAGES}


def _restarted(changes: dict[str, Any], **pool: Any) -> set[str]:
    """The stages that restart when the model is changed."""
    before, after = _revisions(_model()), _revisions(_model(changes, **pool))
    return {name for name in STAGES if before[name] != after[name]}


def test_a_stage_file_tells_the_worker_its_part_of_the_graph() -> None:
    file = stage_file(_model(), "denoiser", "r1", "/var/lib/omni/volumes")

    assert file.model_path == "/var/lib/omni/volumes/models/qwen-image"
    assert [(end.edge, end.peer) for end in file.inputs] == [("text-encoder->denoiser", "text-encoder")]
    assert [(end.edge, end.peer) for end in file.outputs] == [("denoiser->vae-decoder", "vae-decoder")]
    assert (file.stage, file.revision, file.family, file.output) == ("denoiser", "r1", "qwen-image", None)


def test_a_stage_file_survives_being_written_and_read() -> None:
    file = stage_file(_model({"stages[1].fake": {}}), "denoiser", "r1", "/volumes")

    assert StageFile.model_validate_json(file.model_dump_json(by_alias=True)) == file


def test_a_stage_table_tells_the_frontend_where_the_stages_are() -> None:
    table = stage_table(_model(), "r1", created=5, locate=lambda name: StageLocation(service=f"painter-{name}"))

    assert [(stage.name, stage.service, stage.engine) for stage in table.stages] == [
        (name, f"painter-{name}", "diffusion") for name in STAGES
    ]
    assert [(edge.source, edge.target) for edge in table.edges] == [
        ("text-encoder", "denoiser"),
        ("denoiser", "vae-decoder"),
    ]
    assert (table.model, table.namespace, table.revision, table.created) == ("painter", "team", "r1", 5)
    assert StageTable.model_validate_json(table.model_dump_json(by_alias=True)) == table


def test_both_ends_of_an_edge_carry_the_hash_that_the_table_has() -> None:
    model = _model()
    table = stage_table(model, "r1", 0, lambda _: StageLocation(addresses=("unix:/a",)))
    hashes = {f"{edge.source}->{edge.target}": edge.contract_hash for edge in table.edges}

    ends = [
        end for name in STAGES for file in [stage_file(model, name, "r1", "/")] for end in (*file.inputs, *file.outputs)
    ]

    assert len(ends) == 4
    assert all(end.contract_hash == hashes[end.edge] for end in ends)


@pytest.mark.parametrize(
    "changes",
    [
        {"stages[1].sampling": {"steps": 8}},
        {"stages[1].replicas": 5},
        {"stages[1].replicas": 0},
        {"stages[1].autoscaling": {"maxReplicas": 4}},
        {"frontend.replicas": 3},
        {"frontend.limits": {"queueTimeoutSeconds": 5}},
        {"frontend.auth": {"apiKeysSecretRef": {"name": "keys"}}},
        {"model.servedNames": ["other"]},
        {"suspend": True},
        {"stages": [{"name": name} for name in reversed(STAGES)]},
        {"stages[1].replicas": 1, "stages[1].drain": {"timeoutSeconds": 60}, "stages[1].diffusion": {}},
    ],
    ids=lambda changes: next(iter(changes)),
)
@pytest.mark.case("operator:B11")
def test_what_no_worker_reads_restarts_nothing(changes: dict[str, Any]) -> None:
    assert _restarted(changes) == set()


@pytest.mark.parametrize(
    "changes",
    [
        {"stages[1].resources": {"cpu": 1}},
        {"stages[1].maxBatchSize": 2},
        {"stages[1].maxInFlight": 3},
        {"stages[1].shm": {"size": "1Gi"}},
        {"stages[1].drain": {"timeoutSeconds": 5}},
        {"stages[1].startupTimeoutSeconds": 5},
        {"stages[1].template": {"spec": {"priorityClassName": "high"}}},
        {"stages[1].output": {"modality": "image"}},
    ],
    ids=lambda changes: next(iter(changes)),
)
@pytest.mark.case("operator:C16")
def test_a_change_of_one_stage_restarts_that_stage_only(changes: dict[str, Any]) -> None:
    assert _restarted(changes) == {"denoiser"}


def test_the_names_of_voices_are_the_frontend_s_and_restart_nobody() -> None:
    voices = {"stages[2].output": {"modality": "image", "voices": ["ryan"]}}
    assert _restarted(voices) == set()
    assert _restarted({"stages[2].output": {"modality": "image", "voices": []}}) == set()


@pytest.mark.parametrize(
    ("changes", "restarted"),
    [
        ({"stages[0].diffusion": {"dtype": "bfloat16"}}, {"text-encoder", "denoiser"}),
        ({"stages[1].diffusion": {"dtype": "bfloat16"}}, set(STAGES)),
        ({"model.source": "pvc://models/other"}, set(STAGES)),
        ({"model.loadFormat": "dummy"}, set(STAGES)),
        (
            {"edges": [{"from": "denoiser", "to": "vae-decoder", "retain": "terminal"}]},
            {"denoiser", "vae-decoder"},
        ),
    ],
)
def test_a_changed_contract_restarts_both_ends_of_the_edge(changes: dict[str, Any], restarted: set[str]) -> None:
    assert _restarted(changes) == restarted


def test_how_an_edge_streams_is_told_to_its_producer_alone_and_restarts_nobody_else() -> None:
    pools = catalog(pools={"cpu": Pool(profile="cpu")}, allow_fake_engine=True)

    def model(streaming: dict[str, Any] | None) -> ResolvedModel:
        changes = {"edges[0].streaming": streaming} if streaming else {}
        return resolve("painter", "team", fake_spec(changes), pools)

    streams, whole = model({"chunkFrames": 25, "initialChunkFrames": 2}), model(None)
    [told] = stage_file(streams, "first", "r1", "/").outputs
    assert told.streaming == StreamingSpec(chunk_frames=25, initial_chunk_frames=2)
    assert stage_file(streams, "last", "r1", "/") == stage_file(whole, "last", "r1", "/")
    assert stage_revision(streams, "first") != stage_revision(whole, "first")
    assert stage_file(model({"enabled": False}), "first", "r1", "/") == stage_file(whole, "first", "r1", "/")


@pytest.mark.parametrize("pool", [{"image": "runtime-cpu:2"}, {"env": {"A": "1"}}, {"node_selector": {"a": "b"}}])
def test_a_changed_pool_restarts_the_stages_in_it(pool: dict[str, Any]) -> None:
    assert _restarted({}, **pool) == set(STAGES)


@pytest.mark.case("operator:D02")
def test_revisions_are_frozen() -> None:
    """A change here restarts every stage of every model at the next upgrade: it must be meant."""
    assert _revisions(_model()) == {
        "text-encoder": "5dcf3c511c",
        "denoiser": "c833155a9a",
        "vae-decoder": "c928bf8871",
    }
