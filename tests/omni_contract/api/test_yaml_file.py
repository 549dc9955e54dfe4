import pytest

from omni_contract.api.yaml_file import MAX_BYTES, Position, YamlError, documents


def test_every_key_and_item_has_a_place() -> None:
    (document,) = documents("a:\n  b:\n    - x\n    - {c: 1}\n")

    assert document.data == {"a": {"b": ["x", {"c": 1}]}}
    assert document.position(("a", "b")) == Position(2, 3)
    assert document.position(("a", "b", 0)) == Position(3, 7)
    assert document.position(("a", "b", 1, "c")) == Position(4, 8)


def test_what_is_left_out_stands_where_its_nearest_ancestor_does() -> None:
    (document,) = documents("spec:\n  model: {}\n")

    assert document.position(("spec", "model", "source")) == Position(2, 3)
    assert document.position(("metadata", "name")) == Position(1, 1)


def test_empty_documents_are_passed_over() -> None:
    assert [document.data for document in documents("---\n# nothing\n---\na: 1\n---\n")] == [{"a": 1}]


def test_places_of_a_second_document_count_from_the_top_of_the_file() -> None:
    _, second = documents("a: 1\n---\nb: 2\n")

    assert second.position(("b",)) == Position(3, 1)


def test_a_key_that_stands_twice_is_told_with_both_lines() -> None:
    (document,) = documents("a: 1\nb: 2\na: 3\n")

    (problem,) = document.problems
    assert document.position(problem.path) == Position(3, 1)
    assert problem.message == 'the key "a" stands here twice, first in line 1; keep one'


def test_a_date_stays_text_as_in_json() -> None:
    assert documents("a: 2026-11-30\n")[0].data == {"a": "2026-11-30"}


def test_merge_keys_and_aliases_are_followed() -> None:
    (document,) = documents("base: &base {x: 1, y: 2}\nown:\n  <<: *base\n  y: 3\n")

    assert document.data == {"base": {"x": 1, "y": 2}, "own": {"x": 1, "y": 3}}
    assert document.problems == ()


@pytest.mark.parametrize("value", [".nan", ".inf", "!!binary aGk="])
def test_a_value_that_json_cannot_hold_is_told(value: str) -> None:
    (document,) = documents(f"a: {value}\n")

    assert "put it into quotes" in document.problems[0].message


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a:\n  - b\n c: d\n", 3, "this is not YAML"),
        ("a: [1, 2\nb: 3\n", 2, "this is not YAML"),
        ("a: !secret x\n", 1, "could not determine a constructor"),
        ("a: {<<: 1}\n", 1, "needs a map"),
        (
            "a: !!python/object:os.system {}\n",
            1,
            'the tag "tag:yaml.org,2002:python/object:os.system" is not allowed; remove it',
        ),
        ("a: 1\nb: \x00\n", 2, "the character U+0000 is not allowed in YAML"),
        ("? [1, 2]\n: x\n", 1, "a key must be text"),
        ("a: *nowhere\n", 1, "undefined alias"),
    ],
)
def test_text_that_is_no_yaml_is_told_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(YamlError) as refused:
        documents(text)

    assert refused.value.position.line == line
    assert words in refused.value.message


def test_a_file_of_many_megabytes_is_refused_before_it_is_read() -> None:
    with pytest.raises(YamlError, match="larger than 1024 KiB"):
        documents("a" * (MAX_BYTES + 1))


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    with pytest.raises(YamlError, match="aliases counted"):
        documents("\n".join(lines))


def test_an_alias_to_itself_is_refused() -> None:
    with pytest.raises(YamlError, match="deeper than 50 levels"):
        documents("a: &a [*a]\n")


def test_brackets_without_end_are_refused_and_not_a_crash() -> None:
    with pytest.raises(YamlError, match="deeper than 50 levels"):
        documents("[" * 1_000_000)
