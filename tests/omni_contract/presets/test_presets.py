import pytest

from omni_contract.api.parse import parse
from omni_contract.presets import PRESETS, Preset
from omni_contract.resolve import spec_problems
from tests.support.model_files import REMOVED, model_file

ALL = [pytest.param(preset, id=name) for name, preset in PRESETS.items()]


@pytest.mark.parametrize("preset", ALL)
def test_a_family_alone_is_a_complete_model(preset: Preset) -> None:
    model, problems = parse(model_file({"spec.family": preset.family, "spec.stages": REMOVED}))

    assert problems == []
    assert model is not None
    assert spec_problems(model.spec) == []


@pytest.mark.parametrize("preset", ALL)
def test_a_preset_names_itself_and_reads_what_it_gives_defaults_for(preset: Preset) -> None:
    assert PRESETS[preset.family] is preset
    own = {name for stage in preset.stages for name in stage.sampling}
    assert {*preset.sampling, *own} <= set(preset.parameters)
    assert preset.endpoints


@pytest.mark.parametrize("preset", ALL)
def test_a_presets_graph_may_be_written_out_in_a_file(preset: Preset) -> None:
    """Users copy a preset to change it: what the preset says must be sayable."""
    stages = [stage.model_dump(mode="json", by_alias=True, exclude_unset=True) for stage in preset.stages]
    edges = [edge.model_dump(mode="json", by_alias=True, exclude_unset=True) for edge in preset.edges]

    _, problems = parse(model_file({"spec.family": preset.family, "spec.stages": stages, "spec.edges": edges}))

    assert problems == []


def test_qwen_image_is_three_stages_in_a_row_with_the_papers_defaults() -> None:
    preset = PRESETS["qwen-image"]

    assert [stage.name for stage in preset.stages] == ["text-encoder", "denoiser", "vae-decoder"]
    assert [edge.name for edge in preset.edges] == ["text-encoder->denoiser", "denoiser->vae-decoder"]
    assert preset.sampling == {"width": 1024, "height": 1024, "steps": 50, "guidance_scale": 4.0}


def test_qwen3_tts_is_a_talker_that_streams_into_a_codec_with_the_published_voices() -> None:
    preset = PRESETS["qwen3-tts"]
    talker, code2wav = preset.stages

    assert [stage.name for stage in preset.stages] == ["talker", "code2wav"]
    assert {edge.name: edge.streams for edge in preset.edges} == {"talker->code2wav": True}
    assert preset.edges[0].streaming is not None
    assert (preset.edges[0].streaming.initial_chunk_frames, preset.edges[0].streaming.chunk_frames) == (4, 25)
    assert talker.output is None and not talker.sampling and not preset.sampling
    assert code2wav.output is not None and code2wav.output.voices[0] == "vivian"
    assert len(code2wav.output.voices) == 9
    assert "/v1/audio/speech" in preset.endpoints


def test_qwen2_5_omni_is_a_thinker_a_talker_and_a_vocoder_with_the_sources_defaults() -> None:
    preset = PRESETS["qwen2.5-omni"]
    thinker, talker, code2wav = preset.stages

    assert [stage.name for stage in preset.stages] == ["thinker", "talker", "code2wav"]
    assert {edge.name: edge.streams for edge in preset.edges} == {"thinker->talker": True, "talker->code2wav": False}
    assert [stage.output and stage.output.modality for stage in preset.stages] == ["text", None, "audio"]
    assert thinker.ar is not None and thinker.ar.hidden_layers == (0, -1)
    assert dict(thinker.sampling) == {
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": -1,
        "max_tokens": 2048,
        "repetition_penalty": 1.1,
    }
    assert dict(talker.sampling) == {
        "temperature": 0.9,
        "top_p": 0.8,
        "top_k": 40,
        "max_tokens": 2048,
        "repetition_penalty": 1.05,
    }
    assert code2wav.output is not None and code2wav.output.voices == ("Chelsie", "Ethan")


def test_qwen3_omni_streams_to_its_talker_and_from_it_with_the_sources_defaults() -> None:
    preset = PRESETS["qwen3-omni"]
    thinker, talker, code2wav = preset.stages
    to_talker, to_code2wav = (edge.streaming for edge in preset.edges)

    assert [stage.output and stage.output.modality for stage in preset.stages] == ["text", None, "audio"]
    assert to_talker and to_talker.chunk_frames == 1
    assert to_code2wav and (to_code2wav.initial_chunk_frames, to_code2wav.chunk_frames) == (4, 25)
    assert {key: thinker.sampling[key] for key in ("temperature", "top_p", "top_k")} == {
        "temperature": 0.4,
        "top_p": 0.9,
        "top_k": 1,
    }
    assert dict(talker.sampling) == {
        "temperature": 0.9,
        "top_p": 1.0,
        "top_k": 50,
        "max_tokens": 4096,
        "repetition_penalty": 1.05,
    }
    assert code2wav.output is not None and code2wav.output.voices == ("Ethan", "Chelsie", "Aiden")
