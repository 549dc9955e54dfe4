from argparse import ArgumentParser
from pathlib import Path

import pytest

from omni_runtime.families.command import command


def run(*arguments: str) -> int:
    parser = ArgumentParser(prog="omni tiny")
    command.configure(parser)
    return command.run(parser.parse_args(arguments))


def test_a_folder_that_is_not_empty_is_refused_and_left_alone(tmp_path: Path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert run("qwen-image", str(tmp_path)) == 2
    assert f"{tmp_path} is not empty; name another folder, or add --force" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_is_refused_even_by_force(tmp_path: Path, capsys):
    (tmp_path / "file").write_text("")
    assert run("qwen-image", str(tmp_path / "file"), "--force") == 2
    assert "is a file; name a folder" in capsys.readouterr().err


def test_an_unknown_family_is_refused_with_those_that_exist(capsys):
    with pytest.raises(SystemExit):
        run("qwen-imago", "out")
    assert "qwen-image" in capsys.readouterr().err


def test_a_variant_that_a_family_does_not_have_is_refused_with_those_that_it_has(tmp_path: Path, capsys):
    assert run("qwen3-tts", str(tmp_path / "out"), "--variant", "base") == 2
    assert 'no variant "base"; use one of CustomVoice, VoiceDesign, Base' in capsys.readouterr().err
    assert run("qwen-image", str(tmp_path / "out"), "--variant", "base") == 2
    assert "its checkpoints are of one kind" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
