import numpy
import pytest

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.offline.answers import Asked
from omni_runtime.offline.media import array_of
from omni_runtime.offline.outputs import made_of

ASKED = Asked("r1", 3, "a fox", ("text", "audio"))
LOUD = numpy.full(4, 0.5, numpy.float32)


def test_text_is_joined_and_ends_with_its_reason() -> None:
    first = {"text": "a ", "token_ids": [1], "prompt_tokens": 2}
    last = {"text": "fox", "token_ids": [2, 3], "finish_reason": "stop", "stop_reason": 3}
    (text,) = made_of("text", [first, last]).outputs
    assert (text.text, text.token_ids, text.finish_reason, text.stop_reason) == ("a fox", (1, 2, 3), "stop", 3)


def test_sound_is_one_array_with_its_rate() -> None:
    item = {"audio": array_of(LOUD), "sample_rate": 24_000}
    output = ASKED.output("audio", [item, item])
    assert output.audio.tolist() == [0.5] * 8
    assert output.sample_rate == 24_000
    assert output.request_output[0].multimodal_output["audio"] is output.audio


def test_pictures_are_of_pillow_one_or_several() -> None:
    pixels = numpy.arange(2 * 4 * 6 * 3, dtype=numpy.uint8).reshape(2, 4, 6, 3)
    assert [picture.size for picture in made_of("image", [{"image": array_of(pixels)}]).images] == [(6, 4)] * 2
    (alone,) = made_of("image", [{"image": array_of(pixels[0])}]).images
    assert numpy.array_equal(numpy.asarray(alone), pixels[0])


def test_other_modalities_are_arrays_by_name() -> None:
    made = made_of("video", [{"video": array_of(LOUD), "fps": 16}])
    assert made.multimodal_output["video"].tolist() == LOUD.tolist() and made.multimodal_output["fps"] == 16


def test_an_output_knows_its_prompt_and_its_modality() -> None:
    output = ASKED.output("text", [{"text": "hi"}])
    assert (output.prompt_index, output.prompt, output.final_output_type, output.text) == (3, "a fox", "text", "hi")


def test_what_a_failed_output_would_hold_raises_its_error() -> None:
    error = OmniError(ErrorCode.STAGE_FAILED, "no")
    outputs = ASKED.failures(error)
    assert [output.final_output_type for output in outputs] == ["text", "audio"]
    with pytest.raises(OmniError) as caught:
        _ = outputs[0].text
    assert caught.value is error


def test_an_answer_that_is_not_what_the_model_promises_fails() -> None:
    with pytest.raises(OmniError, match="no image"):
        ASKED.output("image", [{"text": "hi"}])
