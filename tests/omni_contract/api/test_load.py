from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_contract.api.load import InvalidFileError, load_model, read_models

SOUND = """\
apiVersion: serving.omnimodel.dev/v1alpha1
kind: OmniModel
metadata: {name: painter}
spec:
  model: {source: "pvc://models/qwen-image"}
  family: qwen-image
"""


def test_a_sound_file_gives_its_model(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text(SOUND)

    assert load_model(tmp_path / "model.yaml").metadata.name == "painter"


def test_problems_stand_in_the_order_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text(SOUND.replace("family:", "famly:").replace("pvc://", "s3://"))

    with pytest.raises(InvalidFileError) as refused:
        load_model(tmp_path / "model.yaml")

    assert [(found.position.line, found.path) for found in refused.value.findings] == [
        (4, "spec"),
        (5, "spec.model.source"),
        (6, "spec.famly"),
    ]
    assert f"{tmp_path / 'model.yaml'}:6:3: spec.famly: unknown key" in str(refused.value)


def test_two_models_in_a_file_are_read_but_not_loaded_as_one(tmp_path: Path) -> None:
    text = SOUND + "---\n" + SOUND.replace("painter", "sculptor")
    (tmp_path / "models.yaml").write_text(text)

    names = [loaded.model.metadata.name for loaded in read_models(text.encode()).models]

    assert names == ["painter", "sculptor"]
    with pytest.raises(InvalidFileError, match='several models, "painter", "sculptor", but one is wanted; split it'):
        load_model(tmp_path / "models.yaml")


def test_objects_of_other_kinds_are_skipped_and_named() -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: api-keys}\n---\n"

    reading = read_models((secret + SOUND).encode())

    assert reading.skipped == ("Secret/api-keys",)
    assert len(reading.models) == 1


def test_one_bad_document_does_not_hide_the_good_one() -> None:
    reading = read_models((SOUND + "---\n" + SOUND.replace("spec:", "spek:")).encode())

    assert [loaded.model.metadata.name for loaded in reading.models] == ["painter"]
    assert [(found.position.line, found.message) for found in reading.findings] == [
        (8, 'the key "spec" is missing'),
        (11, 'unknown key "spek" (did you mean "spec"?)'),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file holds no OmniModel"),
        (b"kind: Secret\nmetadata: {name: x}\n", "the file holds no OmniModel; it holds Secret/x"),
        (b"name: caf\xe9\n", "the file is not UTF-8 text"),
        (b"\x89PNG\r\n", "the file is not UTF-8 text"),
        (b"a: [\n", "this is not YAML"),
    ],
)
def test_a_file_that_holds_no_model_is_told(content: bytes, message: str) -> None:
    (finding,) = read_models(content).findings

    assert message in finding.message


def test_a_misspelt_kind_is_taken_as_meant() -> None:
    (finding,) = read_models(SOUND.replace("OmniModel", "OmniModell").encode()).findings

    assert str(finding) == 'kind: "OmniModell" is not served; use "OmniModel"'


def test_a_twin_key_makes_the_model_unusable() -> None:
    reading = read_models((SOUND + "  family: other\n").encode())

    assert reading.models == ()
    assert 'the key "family" stands here twice, first in line 6; keep one' in {f.message for f in reading.findings}


@given(st.binary(max_size=60) | st.text(alphabet="ab:-{}[]&*!<|>'\"#? \n\t0", max_size=60).map(str.encode))
def test_whatever_a_file_holds_it_is_answered_and_never_a_crash(content: bytes) -> None:
    reading = read_models(content)

    assert reading.models == ()
    assert all(found.message and found.position.line >= 1 for found in reading.findings)
    assert reading.findings
