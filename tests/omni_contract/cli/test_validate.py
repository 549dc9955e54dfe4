import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from omni_contract.cli import main
from tests.support.model_files import model_file


@pytest.fixture
def write(tmp_path: Path):
    def write(**changes):
        path = tmp_path / "model.yaml"
        path.write_text(yaml.safe_dump(model_file(changes.get("changes")), sort_keys=False))
        return path

    return write


def test_a_sound_file_is_told_and_the_status_is_0(write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write()

    assert main(["validate", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: painter is valid\n"


def test_a_bad_file_is_told_line_by_line_and_the_status_is_1(write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(changes={"spec.stages[0].replica": 2, "spec.model.source": "Qwen/Qwen-Image"})

    assert main(["validate", str(path)]) == 1

    source, replica = capsys.readouterr().out.splitlines()
    assert source.startswith(f'{path}:7:5: spec.model.source: source "Qwen/Qwen-Image" is a model on a hub')
    assert replica == f'{path}:11:5: spec.stages[0].replica: unknown key "replica" (did you mean "replicas"?)'


def test_problems_of_the_graph_have_lines_too(write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(changes={"spec.stages[1].sampling": {"step": 3}})

    assert main(["validate", str(path)]) == 1
    assert f"{path}:13:7: spec.stages[1].sampling.step: " in capsys.readouterr().out


def test_programs_get_json(write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(changes={"spec.family": "qwen"})

    assert main(["validate", "--output", "json", str(path)]) == 1

    said = json.loads(capsys.readouterr().out)
    assert (said["file"], said["valid"], said["models"], said["skipped"]) == (str(path), False, [], [])
    (problem,) = said["problems"]
    assert (problem["line"], problem["column"], problem["path"]) == (8, 3, "spec.family")


def test_standard_input_may_be_the_file(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = yaml.safe_dump(model_file())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    assert main(["validate", "-"]) == 0
    assert capsys.readouterr().out == "<stdin>: painter is valid\n"


def test_other_objects_in_the_file_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([model_file(), secret]))

    assert main(["validate", str(tmp_path / "all.yaml")]) == 0
    assert "Secret/keys skipped, it is no OmniModel" in capsys.readouterr().out


def test_a_file_that_is_not_there_is_told_and_the_status_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "nowhere.yaml"]) == 2
    assert capsys.readouterr().err == "nowhere.yaml: No such file or directory\n"
