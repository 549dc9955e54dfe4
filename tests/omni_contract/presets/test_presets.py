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
    assert set(preset.sampling) <= set(preset.parameters)
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
