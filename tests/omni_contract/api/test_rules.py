from collections import Counter

import pytest

from omni_contract.api.parse import parse
from omni_contract.api.problems import dotted
from omni_contract.api.rules import RULES
from omni_contract.api.rules.rule import PLACEHOLDER
from tests.omni_contract.api.bad_files import AGAINST_RULES, BAD_FILES, BadFile
from tests.support.model_files import fake_file, model_file

TITLES = [bad.title for bad in BAD_FILES]


@pytest.mark.case("runtime:A23", "runtime:L26")
@pytest.mark.parametrize("bad", BAD_FILES, ids=TITLES)
def test_a_bad_file_is_refused_with_one_sentence_at_its_place(bad: BadFile) -> None:
    model, problems = parse(dict(bad.document))

    assert model is None
    assert [(dotted(problem.path), problem.message) for problem in problems] == [(bad.path, bad.message + bad.hint)]


@pytest.mark.parametrize("document", [model_file(), fake_file()], ids=["with family", "without family"])
def test_a_sound_file_breaks_no_rule(document: dict) -> None:
    model, problems = parse(document)

    assert problems == []
    assert model is not None


def test_every_rule_is_broken_by_a_bad_file() -> None:
    said = [bad.message for bad in AGAINST_RULES]

    silent = [rule.message for rule in RULES if not any(_speaks(rule.message, sentence) for sentence in said)]

    assert silent == []


def test_no_two_rules_say_the_same() -> None:
    assert max(Counter(rule.message for rule in RULES).values()) == 1


def test_several_broken_rules_are_all_told() -> None:
    document = model_file({"spec.model.source": "Qwen/Qwen-Image", "spec.frontend.service": {"nodePort": 30080}})

    _, problems = parse(document)

    assert [dotted(problem.path) for problem in problems] == ["spec.model.source", "spec.frontend.service.nodePort"]


def _speaks(template: str, sentence: str) -> bool:
    """Whether the rule's sentence, whatever its values, is the one that was said."""
    parts = PLACEHOLDER.sub("\0", template).split("\0")
    return all(part in sentence for part in parts)
