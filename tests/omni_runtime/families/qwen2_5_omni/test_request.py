import pytest

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.families.qwen2_5_omni.request import SpeechSettings, parse_speech_settings


def test_what_a_request_leaves_open_is_as_transformers_has_it():
    assert parse_speech_settings({"temperature": 0.9}) == SpeechSettings(None, 10, 0.5, 0, None)


def test_a_request_may_say_all_of_it():
    said = {"voice": "Ethan", "steps": 4, "guidance_scale": 1, "seed": 7, "max_mel_frames": 0}
    assert parse_speech_settings(said) == SpeechSettings("Ethan", 4, 1.0, 7, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("voice", 3),
        ("steps", 1),
        ("steps", True),
        ("guidance_scale", -1.0),
        ("guidance_scale", float("inf")),
        ("guidance_scale", True),
        ("seed", "x"),
        ("seed", -1),
        ("max_mel_frames", -1),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_by_name(name, value):
    with pytest.raises(OmniError, match=f'parameter "{name}" is') as refused:
        parse_speech_settings({name: value})
    assert (refused.value.code, refused.value.param) == (ErrorCode.INVALID_REQUEST, name)
