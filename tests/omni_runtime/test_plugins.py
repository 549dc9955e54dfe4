"""Plug-ins are found by name when first used; what is wrong with one is said by name."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from omni_runtime.plugins import MissingExtraError, Plugin, Registry, UnknownPluginError

Factory = Callable[[], str]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with one plug-in that works, one whose library is absent, and one that is broken itself."""
    folder = tmp_path / "sample_plugins"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "good.py").write_text("def create():\n    return 'made'\n")
    (folder / "needy.py").write_text("import a_library_that_is_not_there\n")
    (folder / "broken.py").write_text("from sample_plugins import_typo\n".replace("import_typo", "import missing_part"))
    (folder / "lost.py").write_text("import sample_plugins.moved\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "sample_plugins"


def registry(package: str, module: str, extra: str | None = "speed") -> Registry[Factory]:
    made: Registry[Factory] = Registry("connector")
    made.register(module, Plugin(f"{package}.{module}", "create", extra=extra))
    return made


def test_a_plugin_is_imported_when_it_is_first_asked_for(package: str):
    known = registry(package, "good")
    assert f"{package}.good" not in sys.modules
    assert known.factory("good")() == "made"


def test_a_second_plugin_of_a_name_is_refused_naming_both():
    known: Registry[Factory] = Registry("connector")
    known.register("shm", Plugin("first.module", "create"))
    with pytest.raises(ValueError, match=r'connector "shm" is registered twice: first\.module, second\.module'):
        known.register("shm", Plugin("second.module", "create"))


def test_an_unknown_name_is_answered_with_those_that_exist(package: str):
    with pytest.raises(UnknownPluginError, match='no connector is named "carrier-pigeon"; known are good'):
        registry(package, "good").factory("carrier-pigeon")


def test_a_missing_library_names_the_extra_that_brings_it(package: str):
    with pytest.raises(MissingExtraError, match=r'"a_library_that_is_not_there"; install omni-operator\[speed\]'):
        registry(package, "needy").factory("needy")


@pytest.mark.parametrize("module", ["broken", "lost"])
def test_a_defect_of_our_own_is_not_taken_for_a_missing_extra(package: str, module: str):
    with pytest.raises(ImportError):
        registry(package, module).factory(module)
