"""A whole model over mutual TLS: every process real, every certificate made here."""

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from omni_contract.api.v1alpha1 import FrontendLimits
from omni_contract.wire.names import FRONTEND
from omni_runtime.local.health import wait_until_ready
from tests.support.certificates import CertificateMaker, name_of
from tests.support.fake_chain import MODEL, STAGES, fake_chain
from tests.support.model_processes import ModelProcesses, free_ports, model_processes
from tests.support.picture_client import wrong_pictures

PATIENT = FrontendLimits(queue_timeout_seconds=1)


@pytest.fixture
def maker(tmp_path: Path) -> CertificateMaker:
    return CertificateMaker.create(tmp_path)


def component_of(process: str) -> str:
    return FRONTEND if process.startswith(FRONTEND) else process


def give_certificates(processes: ModelProcesses, maker: CertificateMaker, *names: str) -> dict[str, Path]:
    """Each of the processes is to start with its own; the folders by component."""
    components = {component_of(name) for name in names}
    folders = {component: maker.folder_of(component, model=MODEL) for component in sorted(components)}
    for name in names:
        plan, folder = processes.plans[name], folders[component_of(name)]
        processes.plans[name] = replace(plan, arguments=(*plan.arguments, "--tls", str(folder)))
    return folders


async def start(processes: ModelProcesses, *frontends: str) -> None:
    """Workers with TLS answer no probe in the clear, so their being ready is seen by the frontends."""
    for name in processes.plans:
        processes.spawn(name)
    await processes.wait_ready(*frontends)


@pytest.mark.case("runtime:Q4")
async def test_certificates_are_replaced_under_load_and_a_stage_restarts_with_the_new_one(
    maker: CertificateMaker, tmp_path: Path
) -> None:
    with model_processes(fake_chain(connector="grpc"), tmp_path) as processes:
        folders = give_certificates(processes, maker, *processes.plans)
        await start(processes, "frontend-0")
        assert await wrong_pictures(processes.urls, range(8)) == []
        pids = {name: processes.pid(name) for name in processes.plans}
        load = asyncio.create_task(wrong_pictures(processes.urls, range(64)))
        for component in folders:
            maker.folder_of(component, model=MODEL)
        assert await load == []
        processes.kill("denoiser")
        processes.spawn("denoiser")
        assert await wrong_pictures(processes.urls, range(8)) == []
        assert {name for name in pids if processes.pid(name) != pids[name]} == {"denoiser"}
        assert f"goes on with a new certificate for {name_of(FRONTEND, MODEL)}" in processes.log("frontend-0")


async def test_a_frontend_without_a_certificate_gets_nothing_and_disturbs_nobody(
    maker: CertificateMaker, tmp_path: Path
) -> None:
    with model_processes(fake_chain(limits=PATIENT), tmp_path, frontends=2) as processes:
        give_certificates(processes, maker, *STAGES, "frontend-0")
        await start(processes, "frontend-0")
        trusted, stranger = processes.urls
        await wait_until_ready(f"{stranger}/livez")
        async with aiohttp.ClientSession() as session:
            for url, status in ((f"{trusted}/readyz", 200), (f"{stranger}/readyz", 503)):
                async with session.get(url) as answer:
                    assert answer.status == status
            body = {"model": MODEL, "prompt": "a fox"}
            async with session.post(f"{stranger}/v1/images/generations", json=body) as answer:
                assert answer.status == 503
                assert (await answer.json())["error"]["code"] == "stage_unavailable"
        assert await wrong_pictures([trusted], range(4)) == []


async def test_a_frontend_whose_files_are_wrong_ends_with_the_name_of_the_file(
    maker: CertificateMaker, tmp_path: Path
) -> None:
    with model_processes(fake_chain(), tmp_path) as processes:
        folder = give_certificates(processes, maker, "frontend-0")[FRONTEND]
        shutil.rmtree(folder)
        processes.spawn("frontend-0")
        assert await processes.wait("frontend-0", timeout_s=60) == 2
        assert f"{folder}/tls.crt: No such file or directory" in processes.log("frontend-0")


async def test_the_frontend_s_admin_port_reaches_its_stages_over_mutual_tls(
    maker: CertificateMaker, tmp_path: Path
) -> None:
    [port] = free_ports(1)
    with model_processes(fake_chain(), tmp_path) as processes:
        give_certificates(processes, maker, *processes.plans)
        plan = processes.plans["frontend-0"]
        processes.plans["frontend-0"] = replace(plan, arguments=(*plan.arguments, "--admin-port", str(port)))
        await start(processes, "frontend-0")
        url = f"http://127.0.0.1:{port}"
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{url}/sleep?stage=denoiser") as answer:
                assert (answer.status, (await answer.json())["replicas"][0]["answer"]) == (200, {"freed_bytes": 0})
            async with session.get(f"{url}/stats") as answer:
                told = {one["stage"]: one["answer"]["state"] for one in (await answer.json())["replicas"]}
        assert told == dict.fromkeys(STAGES, "ready") | {"denoiser": "asleep"}
