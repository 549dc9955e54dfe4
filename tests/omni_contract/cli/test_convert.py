import io
import sys
from pathlib import Path

import pytest

from omni_contract.cli import main
from omni_contract.cli.convert import command
from tests.support.old_stage_files import old_stage_file


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.yaml"
    path.write_bytes(old_stage_file())
    return path


def test_the_result_is_printed_and_is_valid(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["convert", str(old), "--name", "omni", "--model", "pvc://models/omni", "--pool", "h100"]) == 0

    said = capsys.readouterr()
    assert said.err == ""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said.out.encode())))
    assert main(["validate", "-"]) == 0
    assert capsys.readouterr().out == "<stdin>: omni is valid\n"


def test_a_file_is_written_over_only_if_that_is_asked_for(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.yaml"
    new.write_text("mine")

    assert main(["convert", str(old), "-o", str(new)]) == 2
    assert new.read_text() == "mine"
    assert capsys.readouterr().err == f"{new}: exists; choose another name, or write over it with --force\n"

    assert main(["convert", str(old), "-o", str(new), "--force"]) == 0
    assert "kind: OmniModel" in new.read_text()


def test_nothing_is_written_of_a_file_with_problems(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old.write_bytes(old_stage_file({"stage_args[0].engine_args.trust_remote_code": True}))
    new = tmp_path / "new.yaml"

    assert main(["convert", str(old), "-o", str(new)]) == 1
    assert not new.exists()
    told = "stage_args[0].engine_args.trust_remote_code: true cannot be kept"
    assert capsys.readouterr().err.startswith(f"{old}:6:5: {told}")

    assert main(["convert", str(old), "-o", str(new), "--skip-refused"]) == 0
    assert "# left out: engine_args.trust_remote_code" in new.read_text()


def test_standard_input_may_be_the_file(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(old_stage_file())))

    assert main(["convert", "-"]) == 0
    assert "kind: OmniModel" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["absent.yaml", "."])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    path = tmp_path / name

    assert main(["convert", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"{path}: ")


def test_an_endless_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "/dev/zero"]) == 1
    assert "larger than 1024 KiB" in capsys.readouterr().err


def test_the_command_is_called_by_its_entry_s_name() -> None:
    assert command.name == "convert"
