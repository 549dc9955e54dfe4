import shutil
from pathlib import Path
from typing import Any

import pytest

from omni_contract.accelerators import Vendor
from omni_runtime.local.errors import InputError
from omni_runtime.offline.local_model import resolved
from omni_runtime.offline.settings import settings_of

OLD_FILE = Path(__file__).parents[2] / "omni_contract" / "convert" / "old" / "qwen2_5_omni.yaml"
EXAMPLE = Path(__file__).parents[3] / "examples" / "fake-omni.yaml"


def test_options_are_those_of_serve() -> None:
    settings = settings_of(EXAMPLE, {"models": "/m"}, {"device": "cpu", "allow_fake_engine": True, "max_in_flight": 2})
    assert settings.serve.volumes == ("models=/m",)
    assert settings.serve.device is Vendor.CPU
    assert settings.serve.allow_fake_engine
    assert settings.serve.log_level == "warning"
    assert settings.max_in_flight == 2


def test_an_unknown_option_is_refused_with_what_was_probably_meant() -> None:
    unknown: Any = {"max_in_fligt": 2}
    with pytest.raises(TypeError, match='did you mean "max_in_flight"'):
        settings_of(EXAMPLE, None, unknown)


@pytest.mark.parametrize(
    ("model", "options", "word"),
    [
        (EXAMPLE.parent, {}, "is a folder"),
        ("gone.yaml", {}, "no such file"),
        (EXAMPLE, {"device": "abacus"}, "use one of"),
        (EXAMPLE, {"log_level": "loud"}, "use one of"),
        (EXAMPLE, {"max_in_flight": 0}, "at least 1"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_starts(model: Any, options: Any, word: str) -> None:
    with pytest.raises(InputError, match=word):
        settings_of(model, None, options)


def test_an_old_stage_file_takes_the_place_of_the_models_which_is_its_checkpoint_then(tmp_path: Path) -> None:
    shutil.copy(OLD_FILE, tmp_path / "old.yaml")
    (tmp_path / "checkpoint").mkdir()
    options: Any = {"stage_configs_path": tmp_path / "old.yaml", "skip_refused": True, "device": "cpu"}
    serve = settings_of(tmp_path / "checkpoint", None, options).serve
    model = resolved(serve)
    assert (model.name, model.source.path) == ("old", "checkpoint")
    assert [stage.name for stage in model.stages] == ["thinker", "talker", "code2wav"]


def test_what_an_old_file_has_and_nobody_can_keep_is_told(tmp_path: Path) -> None:
    serve = settings_of(tmp_path, None, {"stage_configs_path": OLD_FILE}).serve
    with pytest.raises(InputError, match="dotted class paths are not accepted"):
        resolved(serve)
