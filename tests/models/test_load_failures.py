"""A diffusion stage that cannot load says so by its exit code and in one sentence, as a real process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from omni_contract.accelerators import Vendor
from omni_contract.wire.exit_codes import ExitCode
from omni_contract.wire.stage_file import StageFile
from omni_runtime.engines.diffusion import create
from omni_runtime.engines.protocol import UnusableEngineError
from tests.models.engines import stage_file, widened

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 500
"""Importing torch and diffusers alone takes a minute where many want the processor."""


def ended(file: StageFile, folder: Path, module: str = "omni_runtime.worker") -> tuple[int, str]:
    """The exit code, and the last line of the log."""
    path = folder / "stage.json"
    path.write_text(file.model_dump_json(by_alias=True))
    arguments = ["--stage-file", path, "--listen", f"unix:{folder}/stage.sock", "--log-json"]
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=ROOT)
    return done.returncode, json.loads(done.stderr.splitlines()[-1])["message"]


def test_a_model_that_does_not_fit_into_memory_is_told_as_such(tiny_model, tmp_path):
    giant = widened(tiny_model, tmp_path / "giant", heads=4096)
    file = stage_file(giant, ("denoise",), load_format="dummy")
    assert ended(file, tmp_path, "tests.models.confined_worker") == (
        ExitCode.OUT_OF_MEMORY,
        'stage "denoise" cannot load: the device, or host memory, has too little room for the model\'s weights',
    )


def test_a_folder_without_a_model_is_named(tmp_path):
    assert ended(stage_file(tmp_path, ("decode",)), tmp_path) == (
        ExitCode.LOAD_FAILED,
        f'stage "decode" cannot load: {tmp_path} has no model_index.json; it must be a diffusers pipeline folder',
    )


def test_a_stage_without_a_family_cannot_be_made(tiny_model):
    with pytest.raises(UnusableEngineError, match="a diffusion engine needs the model's family"):
        create(stage_file(tiny_model, family=None))


def test_a_device_that_is_not_here_is_a_wrong_environment(tiny_model):
    with pytest.raises(UnusableEngineError, match='vendor "ascend"'):
        create(stage_file(tiny_model, vendor=Vendor.ASCEND))
