import pytest

from omni_contract.api.v1alpha1 import DiffusionEngine, FakeEngine, OutputSpec
from omni_contract.presets import PRESETS
from omni_contract.resolve.graph import CycleError, output_of, replaces_preset, stage_graph
from tests.support.model_files import fake_spec, spec

PRESET = PRESETS["qwen-image"]


def test_fields_of_the_file_lie_over_those_of_the_preset() -> None:
    graph = stage_graph(spec({"stages": [{"name": "denoiser", "replicas": 3, "drain": {"timeoutSeconds": 5}}]}), PRESET)

    denoiser = graph.stages[1]
    assert denoiser.diffusion == DiffusionEngine(phases=("denoise",))
    assert (denoiser.replicas, denoiser.drain.timeout_seconds, denoiser.startup_timeout_seconds) == (3, 5, 600)
    assert len(graph.stages) == 3


def test_a_part_of_an_engine_block_keeps_the_rest_of_the_presets() -> None:
    graph = stage_graph(spec({"stages[1].diffusion": {"dtype": "bfloat16"}}), PRESET)

    assert graph.stages[1].diffusion == DiffusionEngine(phases=("denoise",), dtype="bfloat16")


def test_an_empty_list_of_voices_takes_away_those_of_the_preset() -> None:
    silent = {"modality": "audio", "voices": []}
    graph = stage_graph(spec({"stages": [{"name": "code2wav", "output": silent}]}), PRESETS["qwen3-tts"])

    assert graph.stages[1].output == OutputSpec(modality="audio", voices=())


def test_another_engine_takes_the_place_of_the_presets() -> None:
    graph = stage_graph(spec({"stages[1].fake": {"steps": 5}}), PRESET)

    assert graph.stages[1].diffusion is None
    assert graph.stages[1].fake == FakeEngine(steps=5)


def test_an_edge_of_the_file_lies_over_the_presets_edge() -> None:
    graph = stage_graph(spec({"edges": [{"from": "denoiser", "to": "vae-decoder", "connector": "grpc"}]}), PRESET)

    assert [(edge.name, edge.connector) for edge in graph.edges] == [
        ("text-encoder->denoiser", "auto"),
        ("denoiser->vae-decoder", "grpc"),
    ]


def test_a_stage_with_a_name_of_its_own_replaces_the_whole_preset_graph() -> None:
    fused = spec({"stages": [{"name": "all-in-one", "diffusion": {}}]})

    graph = stage_graph(fused, PRESET)

    assert replaces_preset(fused, PRESET)
    assert [stage.name for stage in graph.stages] == ["all-in-one"]
    assert graph.edges == ()


def test_the_last_stage_of_a_replaced_graph_gives_the_familys_modality() -> None:
    graph = stage_graph(spec({"stages": [{"name": "all-in-one", "diffusion": {}}]}), PRESET)

    assert output_of(graph.stages[0], graph, PRESET) == OutputSpec(modality="image")


def test_without_a_preset_the_graph_is_the_files() -> None:
    own = fake_spec()

    assert stage_graph(own, None).stages == own.stages


def test_a_circle_names_only_the_stages_on_it_or_behind_it() -> None:
    stages = [{"name": name, "fake": {}} for name in ("a", "b", "c")]
    edges = [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}, {"from": "c", "to": "b"}]

    with pytest.raises(CycleError) as circle:
        stage_graph(fake_spec({"stages": stages, "edges": edges}), None).in_order()

    assert circle.value.stages == ("b", "c")
