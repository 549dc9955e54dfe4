from pathlib import Path

import pytest

from omni_runtime.local.errors import InputError
from omni_runtime.local.volumes import check_source, parse_volumes
from tests.support.local_models import example_model


def test_volumes_are_folders_by_claim(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert parse_volumes([f"models={tmp_path}/a/../a", f"other={tmp_path}"]) == {
        "models": tmp_path / "a",
        "other": tmp_path,
    }


@pytest.mark.parametrize("text", ["models", "=dir", "models="])
def test_a_volume_in_another_form_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match=r"write CLAIM=DIR, for example --volume models=\./models"):
        parse_volumes([text])


def test_a_volume_that_is_no_folder_is_refused_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{tmp_path}/absent is not a folder"):
        parse_volumes([f"models={tmp_path}/absent"])


def test_the_models_claim_must_be_given() -> None:
    with pytest.raises(InputError, match=r"pvc://models/qwen-image; say which folder that is with --volume models=DIR"):
        check_source(example_model(), {})


def test_the_models_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it has no folder qwen-image"):
        check_source(example_model(), {"models": tmp_path})
    (tmp_path / "qwen-image").mkdir()
    check_source(example_model(), {"models": tmp_path})
