"""What can be answered while some of a model's components are away."""

import itertools
from collections.abc import Iterator

import pytest

from omni_operator.objects import Manifest
from omni_operator.plan.outputs import outputs_of
from tests.support.operator_models import a_model, a_spec, a_stage, resolved

PARTS = ("thinker", "talker", "vocoder", "frontend")


def speaker(**fields: object) -> Manifest:
    thinker = a_stage("thinker", output={"modality": "text"})
    vocoder = a_stage("vocoder", output={"modality": "audio"})
    return a_model(a_spec(thinker, a_stage("talker"), vocoder, **fields))


def served(live: set[str]) -> dict[str, bool]:
    return {output.modality: output.is_servable for output in outputs_of(resolved(speaker()), live)}


def test_everything_is_served_while_everything_lives() -> None:
    assert served(set(PARTS)) == {"text": True, "audio": True}


@pytest.mark.parametrize("away", ["talker", "vocoder"])
def test_text_goes_on_without_the_stages_that_speak(away: str) -> None:
    assert served({*PARTS} - {away}) == {"text": True, "audio": False}


@pytest.mark.parametrize("away", ["thinker", "frontend"])
def test_nothing_goes_on_without_what_every_answer_needs(away: str) -> None:
    assert served({*PARTS} - {away}) == {"text": False, "audio": False}


def every_set() -> Iterator[set[str]]:
    for count in range(len(PARTS) + 1):
        yield from map(set, itertools.combinations(PARTS, count))


def test_what_is_missing_is_named_and_nothing_else() -> None:
    for live in every_set():
        text, audio = outputs_of(resolved(speaker()), live)
        assert set(text.missing) == {"thinker", "frontend"} - live
        assert set(audio.missing) == set(PARTS) - live


def test_a_group_is_missing_once_under_its_own_name() -> None:
    model = resolved(speaker(placement={"colocate": [["talker", "vocoder"]]}))
    text, audio = outputs_of(model, {"thinker", "frontend"})
    assert text.is_servable
    assert audio.missing == ("colocation-with-talker",)


def test_an_answer_that_another_stage_goes_on_from_is_no_output() -> None:
    hidden = a_stage("thinker", output={"modality": "text", "final": False})
    model = a_model(a_spec(hidden, a_stage("vocoder", output={"modality": "audio"})))
    assert [output.modality for output in outputs_of(resolved(model), set())] == ["audio"]
