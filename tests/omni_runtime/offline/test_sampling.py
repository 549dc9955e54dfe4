import pytest

from omni_contract.wire.errors import OmniError
from omni_runtime.offline.prompts import Reading
from omni_runtime.offline.sampling import parameters_of
from tests.support.stage_tables import stage, table

TALKING = table([stage("thinker", "text"), stage("talker"), stage("vocoder", "audio")])
SPEAKING = table([stage("talker"), stage("vocoder", "audio")])
PAINTING = table([stage("encoder"), stage("painter", "image")])


def test_keywords_reach_the_stage_that_answers_and_the_seed_reaches_all() -> None:
    asked = {"temperature": 0.5, "max_tokens": 9, "seed": 7}
    expected = {"seed": 7, "thinker.temperature": 0.5, "thinker.max_tokens": 9}
    assert parameters_of(asked, None, Reading.ANSWER, TALKING) == expected
    assert parameters_of({"lora": "poet"}, None, Reading.ANSWER, TALKING) == {"thinker.lora": "poet"}
    assert parameters_of({"max_tokens": 9}, None, Reading.SPEAK, SPEAKING) == {"talker.max_tokens": 9}


def test_pictures_are_asked_for_by_the_names_of_diffusers_too() -> None:
    asked = {"num_inference_steps": 4, "true_cfg_scale": 3.0, "width": 64}
    assert parameters_of(asked, None, Reading.PAINT, PAINTING) == {"steps": 4, "guidance_scale": 3.0, "width": 64}


def test_the_list_has_a_map_for_each_stage_and_wins_there() -> None:
    of_stages = [{"temperature": 0}, {"top_k": 1}, {}]
    assert parameters_of({"temperature": 1}, of_stages, Reading.ANSWER, TALKING) == {
        "thinker.temperature": 0,
        "talker.top_k": 1,
    }


def test_what_no_stage_knows_is_refused_with_what_was_probably_meant() -> None:
    with pytest.raises(OmniError, match='did you mean "temperature"'):
        parameters_of({"temprature": 1}, None, Reading.ANSWER, TALKING)
    with pytest.raises(OmniError, match="one object for each stage"):
        parameters_of({}, [{}], Reading.ANSWER, TALKING)
