"""`omni serve` with edges over Mooncake: the master of a managed store runs beside the stages and ends with them."""

import signal
from pathlib import Path

import psutil
import pytest
from openai import APIError, OpenAI

from tests.local.conftest import model_file
from tests.support.process_census import is_running
from tests.support.serve_process import Serve, serving
from tests.support.waiting import becomes, eventually

MODEL = """
apiVersion: serving.omnimodel.dev/v1alpha1
kind: OmniModel
metadata: {name: fake-painter}
spec:
  model: {source: pvc://models/none, loadFormat: dummy}
  stages:
    - {name: text-encoder, fake: {}, sampling: {width: 64, height: 64}}
    - {name: denoiser, fake: {}}
    - {name: vae-decoder, fake: {}, output: {modality: image}}
  connectors:
    - {name: store, mooncakeStore: {managed: true, segmentSize: 64Mi, bufferSize: 64Mi}}
    - {name: engine, mooncakeTransferEngine: {poolSize: 64Mi}}
  edges:
    - {from: text-encoder, to: denoiser, connector: store}
    - {from: denoiser, to: vae-decoder, connector: engine}
"""


@pytest.fixture
def arguments(tmp_path: Path) -> tuple[str, ...]:
    return model_file(tmp_path, MODEL)


def picture(url: str) -> str | None:
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    answer = client.images.generate(model="fake-painter", prompt="a red fox", size="64x64")
    return answer.data[0].b64_json if answer.data else None


def master(serve: Serve) -> psutil.Process:
    (found,) = [one for pid in serve.processes() if (one := psutil.Process(pid)).name() == "mooncake_master"]
    return found


@pytest.mark.case("runtime:X8")
def test_payloads_take_the_store_and_the_transfer_engine_and_all_ends_together(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    with serving(*arguments, folder=tmp_path) as serve:
        assert picture(serve.url())
        assert all(
            where.laddr.ip == "127.0.0.1" for where in master(serve).net_connections() if where.status == "LISTEN"
        )
        serve.signal(signal.SIGTERM)
        assert serve.wait() == 0
        assert serve.processes() == set()


def test_a_master_that_dies_is_started_again_and_the_stages_join_it(arguments: tuple[str, ...], tmp_path: Path) -> None:
    with serving(*arguments, folder=tmp_path) as serve:
        assert picture(serve.url())
        master(serve).kill()
        eventually("the store takes payloads again", lambda: "store-master" in serve.log() and painted(serve.url()))


def test_the_master_dies_with_a_supervisor_that_is_killed(arguments: tuple[str, ...], tmp_path: Path) -> None:
    with serving(*arguments, folder=tmp_path) as serve:
        serve.url()
        pid = master(serve).pid
        serve.signal(signal.SIGKILL)
        assert becomes(lambda: not is_running(pid), within_s=10)


def painted(url: str) -> bool:
    """False while requests fail because their payloads have nowhere to go."""
    try:
        return picture(url) is not None
    except APIError:
        return False
