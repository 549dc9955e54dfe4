"""The pod of two stages as the operator writes it, run as processes here: health, death, drain, last words."""

import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from omni_contract.wire.exit_codes import ExitCode
from omni_contract.wire.names import HEALTH_READY, certificate_name
from tests.support.certificates import CertificateMaker
from tests.support.model_processes import MARK, free_ports
from tests.support.operator_models import a_model, a_spec, a_stage, child, children_of
from tests.support.process_census import processes_with
from tests.support.waiting import becomes, eventually, settled

pytestmark = pytest.mark.local


class Group:
    def __init__(self, process: "subprocess.Popen[str]", log: Path, health: str, mark: str) -> None:
        self.process = process
        self._log = log
        self._health = health
        self._mark = mark

    def last_message(self) -> str:
        """What a pod's status would tell."""
        message: str = json.loads(self._log.read_text().splitlines()[-1])["message"]
        return message

    def is_ready(self) -> bool:
        with grpc.insecure_channel(self._health) as channel:
            try:
                answer = HealthStub(channel).Check(HealthCheckRequest(service=HEALTH_READY), timeout=5)
            except grpc.RpcError:
                return False
        return bool(answer.status == HealthCheckResponse.SERVING)

    def workers(self) -> list[int]:
        return sorted(pid for pid in processes_with(MARK, self._mark) if "omni_runtime.worker" in command_line(pid))

    def remains(self) -> set[int]:
        return settled(lambda: processes_with(MARK, self._mark), lambda left: not left, within_s=5)


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except FileNotFoundError:
        return ""


def write_files(folder: Path, arena: Path, **fields: Any) -> None:
    """The operator's own, moved to these folders and to free ports."""
    stages = [a_stage(name, drain={"timeoutSeconds": 5}) for name in ("denoiser", "decoder")]
    spec = {**a_spec(*stages, placement={"colocate": [["denoiser", "decoder"]]}), **fields}
    children = children_of(a_model(spec))
    volumes = child(children, "Deployment", "toy-colocation-with-denoiser")["spec"]["template"]["spec"]["volumes"]
    name = next(one["configMap"]["name"] for one in volumes if one["name"] == "stage-files")
    data = {folder / file: text for file, text in child(children, "ConfigMap", name)["data"].items()}
    for file, text in moved(data, folder, arena).items():
        file.write_text(text)


@pytest.fixture
def arena() -> Iterator[Path]:
    """In memory, as the pod's volume is."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@contextmanager
def running_group(folder: Path) -> Iterator[Group]:
    (health,) = free_ports(1)
    mark, log = folder.name, folder / "group.log"
    arguments = ["--group-file", str(folder / "group.json"), "--health-port", str(health)]
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "omni_runtime.local.group", *arguments],
            env={**os.environ, MARK: mark, "OMNI_NAMESPACE": "team"},
            stderr=stderr,
            text=True,
        ) as process,
    ):
        running = Group(process, log, f"127.0.0.1:{health}", mark)
        try:
            yield running
        finally:
            process.kill()
            process.wait()
            assert running.remains() == set()


def moved(files: dict[Path, str], folder: Path, arena: Path) -> dict[Path, str]:
    ports = iter(free_ports(6))
    places = {"/etc/omni": str(folder), "/var/lib/omni/arena": str(arena), "0.0.0.0": "127.0.0.1"}
    taken = {str(port): str(next(ports)) for port in (50051, 50052, 9090, 50061, 50062, 9091)}
    for old, new in {**places, **taken}.items():
        files = {path: text.replace(old, new) for path, text in files.items()}
    return files


def test_a_pod_is_ready_once_all_of_its_stages_are_and_ends_when_it_is_told_to(tmp_path: Path, arena: Path) -> None:
    write_files(tmp_path, arena)
    with running_group(tmp_path) as running:
        eventually("the group is ready", running.is_ready)
        assert len(running.workers()) == 2
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(20) == ExitCode.OK
        assert running.remains() == set()


def test_a_stage_that_is_killed_ends_the_whole_pod(tmp_path: Path, arena: Path) -> None:
    write_files(tmp_path, arena)
    with running_group(tmp_path) as running:
        eventually("the group is ready", running.is_ready)
        os.kill(running.workers()[-1], signal.SIGKILL)
        assert running.process.wait(20) == 128 + signal.SIGKILL
        assert 'stage "d' in running.last_message()
        assert "was killed by SIGKILL" in running.last_message()
        assert running.remains() == set()


def test_a_pod_is_not_ready_while_one_of_its_stages_is_silent(tmp_path: Path, arena: Path) -> None:
    write_files(tmp_path, arena)
    with running_group(tmp_path) as running:
        eventually("the group is ready", running.is_ready)
        frozen = running.workers()[0]
        os.kill(frozen, signal.SIGSTOP)
        assert becomes(lambda: not running.is_ready(), within_s=10)
        os.kill(frozen, signal.SIGCONT)
        assert becomes(running.is_ready, within_s=10)


def test_the_last_words_of_a_stage_that_cannot_start_are_the_pod_s(tmp_path: Path, arena: Path) -> None:
    write_files(tmp_path, arena)
    file = tmp_path / "decoder.json"
    said = json.loads(file.read_text())
    file.write_text(json.dumps({**said, "unheardOf": 1}))
    with running_group(tmp_path) as ended:
        assert ended.process.wait(30) == ExitCode.MISCONFIGURED
        assert ended.last_message().startswith(f"stage file {file} cannot be used")


@pytest.mark.case("operator:O03")
def test_a_pod_that_crashes_again_and_again_finds_its_memory_free(tmp_path: Path, arena: Path) -> None:
    """The volume outlives the container, and what a crash leaves in it is nobody's."""
    edges = [{"from": "denoiser", "to": "decoder", "connector": "shm"}]
    write_files(tmp_path, arena, edges=edges, connectors=[{"name": "shm", "shm": {"size": "16Mi"}}])
    for _ in range(5):
        with running_group(tmp_path) as running:
            eventually("the group is ready", running.is_ready)
            assert len(list(arena.iterdir())) == 1
            running.process.kill()


def test_each_stage_of_a_pod_shows_its_own_certificate(tmp_path: Path, arena: Path) -> None:
    write_files(tmp_path, arena, network={"tls": {"secretName": "toy-tls"}})
    maker = CertificateMaker.create(tmp_path)
    for stage in ("denoiser", "decoder"):
        pair = maker.authority.server(stage, [certificate_name(stage, "toy", "team")])
        (tmp_path / "tls" / stage).parent.mkdir(exist_ok=True)
        maker.fill(tmp_path / "tls" / stage, pair)
    with running_group(tmp_path) as running:
        eventually("the group is ready", running.is_ready)
        addresses = [listening(tmp_path, member) for member in (0, 1)]
        shown = [names_of(ssl.get_server_certificate(address)) for address in addresses]
        assert shown == ["denoiser.toy.team.omni", "decoder.toy.team.omni"]


def listening(folder: Path, member: int) -> tuple[str, int]:
    arguments = json.loads((folder / "group.json").read_text())["members"][member]["arguments"]
    host, _, port = arguments[arguments.index("--listen") + 1].rpartition(":")
    return host, int(port)


def names_of(certificate: str) -> str:
    """The DNS name that a certificate is made out to."""
    words = ["openssl", "x509", "-noout", "-ext", "subjectAltName"]
    told = subprocess.run(words, input=certificate, capture_output=True, text=True, check=True).stdout
    return told.rpartition("DNS:")[2].strip()


def test_nothing_outlives_a_supervisor_that_is_killed(tmp_path: Path, arena: Path) -> None:
    write_files(tmp_path, arena)
    with running_group(tmp_path) as running:
        eventually("the group is ready", running.is_ready)
        running.process.kill()
        assert running.remains() == set()
