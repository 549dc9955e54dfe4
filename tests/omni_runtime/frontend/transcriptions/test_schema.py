from typing import Any

import pytest

from omni_contract.api.v1alpha1 import FrontendLimits
from omni_contract.wire.errors import OmniError
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.models.service import served_models
from omni_runtime.frontend.transcriptions.schema import TranscriptionRequest, TranslationRequest
from omni_runtime.frontend.transcriptions.service import check_listens
from tests.support.stage_tables import stage, table


def text_model(family: str | None) -> StageTable:
    return table([stage("thinker", "text")]).model_copy(update={"family": family, "limits": FrontendLimits()})


def asked(**fields: Any) -> TranscriptionRequest:
    return TranscriptionRequest.model_validate({"file": b"sound", **fields})


def test_the_model_is_asked_in_words() -> None:
    assert asked().instruction == "Transcribe the audio into text. Answer with nothing else."
    assert asked(language="yue").instruction.startswith("Transcribe the Cantonese audio into text.")
    assert "English" in TranslationRequest.model_validate({"file": b"sound"}).instruction


def test_the_texts_of_a_form_are_read_as_what_they_mean() -> None:
    body = asked(temperature="0.5", stream="true", seed="7", include=["logprobs"])
    assert (body.temperature, body.stream, body.seed, body.wants_logprobs) == (0.5, True, 7, True)


def test_a_family_that_hears_nothing_refuses_and_one_that_is_not_known_asks_its_stage() -> None:
    with pytest.raises(OmniError, match="of family qwen-image, which reads no sound") as refused:
        check_listens(text_model("qwen-image"))
    assert refused.value.param == "model"
    check_listens(text_model("qwen2.5-omni"))
    check_listens(text_model(None))


@pytest.mark.parametrize("family", ["qwen2.5-omni", "qwen3-omni"])
def test_the_models_endpoint_names_what_the_family_listens_at(family: str) -> None:
    [model] = served_models(text_model(family))
    assert model.endpoints[-2:] == ["/v1/audio/transcriptions", "/v1/audio/translations"]
    assert served_models(text_model(None))[0].endpoints == ["/v1/chat/completions", "/v1/completions"]
