"""Names are frozen: a change would leave the old object behind and make everything of every user anew."""

import pytest

from omni_operator.plan import names

LONGEST_MODEL, LONGEST_STAGE = "m" * 30, "s" * 15


@pytest.mark.case("operator:H04")
def test_names_never_change() -> None:
    assert names.component_name("tiny-qwen-image", "denoiser") == "tiny-qwen-image-denoiser"
    assert names.component_name("tiny-qwen-image", names.FRONTEND) == "tiny-qwen-image-frontend"
    assert names.stage_table_name("tiny-qwen-image") == "tiny-qwen-image-stage-table"
    assert names.stage_file_name("tiny-qwen-image", "denoiser", "{}") == "tiny-qwen-image-denoiser-44136fa355"
    assert names.revision_name("tiny-qwen-image", "{}") == "tiny-qwen-image-44136fa355"


@pytest.mark.case("operator:H05")
@pytest.mark.parametrize(
    "name",
    [
        names.component_name(LONGEST_MODEL, LONGEST_STAGE),
        names.stage_file_name(LONGEST_MODEL, LONGEST_STAGE, "content"),
        names.stage_table_name(LONGEST_MODEL),
        names.revision_name(LONGEST_MODEL, "content"),
        names.component_name("m" * 100, "s" * 100),
        names.stage_file_name("m" * 100, "s" * 100, "content"),
    ],
)
def test_names_fit_into_a_label(name: str) -> None:
    assert len(name) <= 63
    assert not name.endswith("-")


def test_shortened_names_of_different_things_differ() -> None:
    assert names.shortened("x" * 70) != names.shortened("x" * 71)


def test_a_shortened_name_never_changes() -> None:
    assert names.shortened("a-name-" * 12) == "a-name-a-name-a-name-a-name-a-name-a-name-a-name-a-n-67c1de9e6f"


@pytest.mark.case("operator:D05")
def test_the_canonical_spelling_does_not_depend_on_the_order_of_keys() -> None:
    assert names.canonical({"b": 1, "a": {"d": 2, "c": 3}}) == names.canonical({"a": {"c": 3, "d": 2}, "b": 1})
