"""`omni control` of workers that speak mutual TLS."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest

from omni_contract.wire.names import FRONTEND
from omni_runtime.administration.calls import CALLS
from omni_runtime.administration.command import DONE, MISNAMED, REFUSED, ask_all, command
from omni_runtime.administration.targets import Target, UnknownTargetError, remote_targets
from omni_runtime.transport.tls import TlsTransport
from tests.omni_runtime.worker.stage_files import stage_file
from tests.omni_runtime.worker.worker_process import WorkerProcess
from tests.support.certificates import MODEL, NAMESPACE, CertificateMaker


def parsed(*arguments: str) -> Namespace:
    parser = ArgumentParser(prog="omni control")
    command.configure(parser)
    return parser.parse_args(arguments)


def test_a_worker_is_named_with_the_stage_whose_certificate_it_must_show() -> None:
    [one, other] = remote_targets(["denoiser=10.0.0.3:50051", "vae-decoder=unix:/run/a=b.sock"])
    assert one == Target("denoiser=10.0.0.3:50051", "10.0.0.3:50051", "denoiser")
    assert (other.address, other.stage) == ("unix:/run/a=b.sock", "vae-decoder")


@pytest.mark.parametrize("names", [["10.0.0.3:50051"], ["denoiser"], []])
def test_a_name_that_does_not_say_so_is_refused(names: list[str]) -> None:
    with pytest.raises(UnknownTargetError, match="STAGE=HOST:PORT"):
        remote_targets(names)


def test_certificates_are_of_a_model_so_it_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(parsed("wake", "denoiser=h:1", "--tls", "/nowhere")) == MISNAMED
    assert "with --tls, name the model" in capsys.readouterr().err


def test_a_certificate_that_cannot_be_used_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(parsed("wake", "denoiser=h:1", "--tls", str(tmp_path), "--model", MODEL)) == MISNAMED
    assert "tls.crt: No such file" in capsys.readouterr().err


@pytest.mark.chaos
async def test_a_worker_obeys_whoever_has_the_frontend_s_certificate_and_nobody_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maker = CertificateMaker.create(tmp_path / "authority")
    ours = TlsTransport(maker.folder_of(FRONTEND), FRONTEND, MODEL, NAMESPACE)
    a_stage_s = TlsTransport(maker.folder_of("vae-decoder"), "vae-decoder", MODEL, NAMESPACE)
    options, call = parsed("sleep", "x"), CALLS["sleep"]
    async with WorkerProcess(stage_file(), tmp_path, transport=ours, tls=maker.folder_of("denoiser")) as worker:
        [target] = remote_targets([f"denoiser={worker.address}"])
        [misnamed] = remote_targets([f"talker={worker.address}"])
        assert await ask_all(call, [target], options, a_stage_s) == REFUSED
        assert await ask_all(call, [misnamed], options, ours) == REFUSED
        assert await ask_all(call, [target], options, ours) == DONE
    said = capsys.readouterr()
    refused, wrong = said.err.splitlines()
    assert refused.startswith(f"{target.name}: it refuses our certificate: Sleep is for frontend.painter.default.omni")
    assert wrong == f"{misnamed.name}: its certificate is not made out to talker.painter.default.omni"
    assert said.out == f"{target.name}: asleep at level 1, 0 GiB given back\n"
