"""How `omni` finds its subcommands, with entry points made up for the test."""

from importlib.metadata import EntryPoint, entry_points

import pytest

from omni_contract.cli import GROUP, MissingExtraError, load, main
from omni_contract.cli.command import Command


def _entry(value: str) -> EntryPoint:
    return EntryPoint(name="draw", value=value, group=GROUP)


def test_validate_needs_no_extra() -> None:
    (entry,) = entry_points(group=GROUP, name="validate")

    assert isinstance(load(entry), Command)


def test_every_command_is_called_by_its_entrys_name() -> None:
    (entry,) = entry_points(group=GROUP, name="validate")

    assert load(entry).name == entry.name


@pytest.fixture
def broken_module(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """Makes a module of the runtime whose import fails for want of a library."""

    def make(name: str, code: str) -> str:
        import omni_runtime

        (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.setattr(omni_runtime, "__path__", [*omni_runtime.__path__, str(tmp_path)])
        return f"omni_runtime.{name}:command"

    return make


def test_a_missing_library_names_the_extra_that_brings_it(broken_module) -> None:
    entry = _entry(broken_module("wants_library", "import library_that_nobody_has\n"))

    with pytest.raises(MissingExtraError) as missing:
        load(entry)

    assert str(missing.value) == (
        '"omni draw" needs library_that_nobody_has, which is not installed; install the extra that brings it: '
        "pip install 'omni-operator[runtime]'"
    )


def test_a_module_of_ours_that_is_missing_is_a_bug_and_no_extra(broken_module) -> None:
    entry = _entry(broken_module("wants_ours", "import omni_runtime.not_written\n"))

    with pytest.raises(ModuleNotFoundError, match="not_written"):
        load(entry)


def test_an_entry_that_is_no_command_is_refused() -> None:
    with pytest.raises(TypeError, match="is a str, not a Command"):
        load(_entry("omni_contract.wire.names:KIND"))


def test_an_unknown_command_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["vaildate"])

    assert ended.value.code == 2
    assert "validate" in capsys.readouterr().err
