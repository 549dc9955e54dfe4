"""GET /v1/models as the official SDK uses it."""

from typing import Any

from openai import OpenAI

from tests.support.fake_chain import MODEL


def test_the_models_endpoint_lists_and_finds_the_model(openai: OpenAI) -> None:
    assert [model.id for model in openai.models.list()] == [MODEL]
    found = openai.models.retrieve(MODEL)
    assert (found.id, found.object, found.created) == (MODEL, "model", 1_700_000_000)


def test_the_models_endpoint_tells_what_each_model_can_do(openai: OpenAI, talker: OpenAI, reader: OpenAI) -> None:
    found: list[Any] = [client.models.list().data[0] for client in (openai, talker, reader)]
    assert [model.modalities for model in found] == [["image"], ["text", "audio"], ["audio"]]
    assert [model.endpoints for model in found] == [
        ["/v1/images/generations", "/v1/chat/completions"],
        ["/v1/chat/completions", "/v1/completions"],
        ["/v1/audio/speech"],
    ]
    assert [model.voices for model in found] == [[], ["vivian", "ryan"], ["vivian", "ryan"]]
