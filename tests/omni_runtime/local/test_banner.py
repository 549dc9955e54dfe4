"""What is printed to be pasted fits what the model answers with; tests/local pastes it."""

import ast
from dataclasses import replace
from textwrap import dedent

import pytest

from omni_runtime.local.banner import banner
from omni_runtime.local.plan import LocalPlan, local_plan
from tests.omni_runtime.local.test_plan import place
from tests.support.local_models import example_model


def plan_of(*modalities: str, voice: str | None = None) -> LocalPlan:
    return replace(local_plan(example_model(), place()), modalities=modalities, voice=voice)


def code_in(printed: str) -> str:
    start = min(place for line in ("  from base64", "  from openai") if (place := printed.find(line)) >= 0)
    return dedent(printed[start : printed.index("\nCtrl-C")])


@pytest.mark.parametrize(
    ("modalities", "has", "lacks"),
    [
        (("image",), ("/v1/images/generations", "client.images.generate("), ("chat",)),
        (("text",), ("/v1/chat/completions", 'modalities=["text"]'), ("images", "wav", "b64decode")),
        (("text", "audio"), ("/v1/chat/completions", 'modalities=["text", "audio"]', "hello.wav"), ("images",)),
        (("text", "image"), ("/v1/images/generations", "/v1/chat/completions"), ("wav",)),
    ],
)
def test_requests_fit_what_the_model_answers_with(
    modalities: tuple[str, ...], has: tuple[str, ...], lacks: tuple[str, ...]
) -> None:
    printed = banner(plan_of(*modalities), needs_key=False)
    assert all(part in printed for part in has)
    assert not any(part in printed for part in lacks)
    ast.parse(code_in(printed))


def test_a_model_that_names_its_voices_is_asked_in_one_of_them() -> None:
    assert '"voice": "vivian"' in banner(plan_of("text", "audio", voice="vivian"), needs_key=False)


def test_a_model_that_reads_out_is_asked_for_a_file_in_one_of_its_voices() -> None:
    printed = banner(plan_of("audio", voice="ryan"), needs_key=False)
    assert "/v1/audio/speech" in printed and "chat" not in printed
    assert '"voice": "ryan"' in printed and 'voice="ryan"' in code_in(printed)
    ast.parse(code_in(printed))


def test_a_model_that_needs_more_than_a_text_to_read_out_is_asked_for_nothing() -> None:
    assert "speech" not in banner(plan_of("audio"), needs_key=False)


def test_a_server_with_keys_is_not_pasted_one() -> None:
    assert 'api_key="YOUR-KEY"' in banner(plan_of("image"), needs_key=True)
