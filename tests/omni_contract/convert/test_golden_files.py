"""One realistic file of each source, in the words of its inventory; what it becomes is what `omni validate` accepts."""

from pathlib import Path

import pytest

from omni_contract.api.load import read_models
from omni_contract.convert import Choices, convert
from omni_contract.resolve import spec_problems

HERE = Path(__file__).parent
OLD = sorted((HERE / "old").glob("*.yaml"))


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_an_old_file_becomes_its_golden_file(path: Path) -> None:
    choices = Choices(path.name, source="pvc://models/omni", pool="h100", skip_refused=True, presets={})

    made = convert(path.read_bytes(), choices)

    assert made.findings == ()
    assert made.text == (HERE / "new" / path.name).read_text()


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_a_golden_file_is_valid(path: Path) -> None:
    reading = read_models((HERE / "new" / path.name).read_bytes())

    (loaded,) = reading.models
    assert reading.findings == ()
    assert spec_problems(loaded.model.spec) == []


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_what_is_refused_stands_against_the_whole_unless_it_may_be_left_out(path: Path) -> None:
    made = convert(path.read_bytes(), Choices(path.name))

    assert made.text == ""
    assert made.findings
    lines = path.read_text().splitlines()
    for found in made.findings:
        key = found.path.rpartition(".")[2]
        assert key in lines[found.position.line - 1], f"{found} is not in line {found.position.line}"
