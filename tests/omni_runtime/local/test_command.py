"""What `omni serve` says of a model file that it cannot use."""

from pathlib import Path

import pytest

from omni_contract.cli import main
from omni_runtime.local.errors import InputError


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "No such file or directory"), ("a: [", "this is not YAML"), ("kind: OmniModel\n", "model.yaml:1:1")],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(
    content: str | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.yaml"
    if content is not None:
        file.write_text(content)
    assert main(["serve", str(file)]) == InputError.exit_code
    printed = capsys.readouterr().err
    assert printed.startswith("omni serve: ") and str(file) in printed and words in printed
