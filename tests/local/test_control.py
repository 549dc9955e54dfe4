"""`omni control` finds the stages that `omni serve` runs, by their names."""

import asyncio
from argparse import ArgumentParser
from pathlib import Path

import pytest

from omni_runtime.administration.calls import CALLS
from omni_runtime.administration.command import DONE, ask_all, command
from omni_runtime.administration.targets import targets
from tests.local.conftest import fake_model_file
from tests.local.test_life import picture
from tests.support.serve_process import Serve, serving


def control(serve: Serve, *arguments: str) -> int:
    parser = ArgumentParser()
    command.configure(parser)
    options = parser.parse_args(arguments)
    return asyncio.run(ask_all(CALLS[options.call], targets(options.stages, serve.runtime_dir / "omni"), options))


def test_stages_are_put_to_sleep_woken_and_profiled_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = tmp_path / "traces"
    with serving(*fake_model_file(tmp_path), "--profile-dir", str(traces), folder=tmp_path) as serve:
        url = serve.url()
        assert control(serve, "sleep", "denoiser", "vae-decoder") == DONE
        assert control(serve, "wake", "denoiser", "vae-decoder") == DONE
        assert control(serve, "start-profile", "text-encoder", "denoiser", "--steps", "1") == DONE
        assert picture(url)
        assert control(serve, "stats") == DONE
    assert {path.name.rpartition("-")[0] for path in traces.iterdir()} == {"text-encoder", "denoiser"}
    said = capsys.readouterr().out
    assert "denoiser-0: asleep at level 1" in said and "vae-decoder-0: awake" in said
    assert "text-encoder-0: ready, requests_total 1" in said
