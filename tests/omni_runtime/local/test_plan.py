import json
from dataclasses import replace
from pathlib import Path

import pytest

from omni_contract.accelerators import Vendor
from omni_contract.api.v1alpha1 import MonitoringSpec
from omni_contract.resolve import ResolvedModel
from omni_contract.resolve.resolved import ResolvedDiagnostics
from omni_contract.wire.stage_file import StageFile
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.media.settings import MediaSettings
from omni_runtime.local.devices import Machine
from omni_runtime.local.plan import LocalPlan, Place, local_plan
from omni_runtime.statistics.settings import StatsSettings
from tests.support.local_models import CPU_ONLY, example_model

DIRECTORY = Path("/run/user/1/omni/x")


def place(**changes: object) -> Place:
    volumes = {"models": Path("/home/me/models")}
    usual = Place(directory=DIRECTORY, host="127.0.0.1", port=8000, machine=CPU_ONLY, volumes=volumes, created=7)
    return replace(usual, **changes)


def on_gpus(model: ResolvedModel, count: int) -> ResolvedModel:
    stages = tuple(
        replace(stage, device=replace(stage.device, vendor=Vendor.NVIDIA, count=count)) for stage in model.stages
    )
    return replace(model, stages=stages)


def with_replicas(model: ResolvedModel, replicas: int) -> ResolvedModel:
    return replace(model, stages=tuple(replace(stage, replicas=replicas) for stage in model.stages))


def table_of(plan: LocalPlan) -> StageTable:
    return StageTable.model_validate_json(plan.files[DIRECTORY / "stage-table.json"])


def test_each_stage_gets_a_worker_on_a_socket_in_the_private_directory() -> None:
    plan = local_plan(example_model(), place())
    assert [stage.name for stage in plan.stages] == ["text-encoder", "denoiser", "vae-decoder"]
    assert plan.stages[1].arguments == (
        *("--stage-file", f"{DIRECTORY}/denoiser.json"),
        *("--listen", f"unix:{DIRECTORY}/denoiser-0.sock"),
        *("--advertise", f"unix:{DIRECTORY}/denoiser-0.sock"),
        *("--replica", "denoiser"),
        "--log-json",
        "--log-level",
        "info",
    )
    assert plan.stages[1].health == f"unix:{DIRECTORY}/denoiser-0.sock"


def test_the_frontend_finds_every_worker_in_the_stage_table() -> None:
    plan = local_plan(with_replicas(example_model(), 2), place())
    addresses = [address for stage in table_of(plan).stages for address in stage.addresses]
    assert addresses == [stage.health for stage in plan.stages]
    assert [stage.name for stage in plan.stages][:2] == ["text-encoder-0", "text-encoder-1"]


def test_stage_files_name_the_model_below_the_volumes_link() -> None:
    plan = local_plan(example_model(), place())
    stage = StageFile.model_validate_json(plan.files[DIRECTORY / "denoiser.json"])
    assert stage.model_path == f"{DIRECTORY}/volumes/models/qwen-image"
    assert plan.links == {DIRECTORY / "volumes/models": Path("/home/me/models")}


def test_a_stage_on_the_cpu_sees_no_accelerator() -> None:
    plan = local_plan(example_model(), place(machine=Machine({Vendor.NVIDIA: ("0",)})))
    assert plan.stages[0].environment["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(
    ("count", "devices"), [(1, ["4", "5", "4"]), (2, ["4,5", "4,5", "4,5"])], ids=["one each", "two each"]
)
def test_devices_are_dealt_out_in_turn(count: int, devices: list[str]) -> None:
    machine = Machine({Vendor.NVIDIA: ("4", "5")})
    plan = local_plan(on_gpus(example_model(), count), place(machine=machine))
    assert [stage.environment["CUDA_VISIBLE_DEVICES"] for stage in plan.stages] == devices
    assert {stage.environment["HIP_VISIBLE_DEVICES"] for stage in plan.stages} == {""}


def test_a_stage_may_give_up_its_drain_by_itself_before_it_is_killed() -> None:
    model = example_model()
    plan = local_plan(model, place())
    for stage, process in zip(model.stages, plan.stages, strict=True):
        assert process.stop_timeout_s > stage.drain_timeout_s


def test_the_frontend_outlives_the_longest_drain() -> None:
    plan = local_plan(example_model(), place())
    assert plan.frontend.stop_timeout_s > max(stage.stop_timeout_s for stage in plan.stages)


@pytest.mark.parametrize(
    ("host", "url"), [("0.0.0.0", "http://127.0.0.1:8000"), ("::1", "http://[::1]:8000"), ("box", "http://box:8000")]
)
def test_the_printed_url_is_one_that_a_client_here_can_open(host: str, url: str) -> None:
    assert local_plan(example_model(), place(host=host)).url == url


def test_every_process_logs_json_which_the_console_shortens() -> None:
    plan = local_plan(example_model(), place())
    assert all("--log-json" in process.arguments for process in (*plan.stages, plan.frontend))


@pytest.mark.parametrize("keys", [None, Path("/home/me/keys")])
def test_api_keys_reach_the_frontend_only(keys: Path | None) -> None:
    plan = local_plan(example_model(), place(api_keys=keys))
    assert ("--api-keys" in plan.frontend.arguments) == (keys is not None)
    assert not any("--api-keys" in stage.arguments for stage in plan.stages)


@pytest.mark.parametrize("folder", [None, Path("/home/me/profiles")])
def test_the_folder_for_profiles_reaches_the_stages_only(folder: Path | None) -> None:
    plan = local_plan(example_model(), place(profile_dir=folder))
    assert all(("--profile-dir" in stage.arguments) == (folder is not None) for stage in plan.stages)
    assert "--profile-dir" not in plan.frontend.arguments


def test_the_same_model_at_the_same_place_gives_the_same_plan() -> None:
    first, second = (local_plan(example_model(), place()) for _ in range(2))
    assert first == second
    assert all(json.loads(text) for text in first.files.values())


@pytest.mark.parametrize(("asked", "levels"), [(None, ["debug", "warning"]), ("error", ["error", "error"])])
def test_processes_log_as_the_file_says_unless_the_command_line_says_otherwise(
    asked: str | None, levels: list[str]
) -> None:
    model = replace(example_model(), monitoring=MonitoringSpec(log_level="warning"))
    first = replace(model.stages[0], diagnostics=ResolvedDiagnostics(log_level="debug"))
    plan = local_plan(replace(model, stages=(first, *model.stages[1:])), place(log_level=asked))
    told = [process.arguments[process.arguments.index("--log-level") + 1] for process in plan.processes]
    assert [told[0], told[-1]] == levels


def test_tables_and_files_of_statistics_and_an_admin_port_are_the_frontend_s() -> None:
    stats = StatsSettings(is_logged=True, directory=Path("/home/me/stats"))
    plan = local_plan(example_model(), place(stats=stats, admin_port=8001))
    asked = ("--admin-port", "8001", "--log-stats", "--stats-dir", "/home/me/stats")
    assert [word for word in plan.frontend.arguments if word in asked] == list(asked)
    assert not any(word in stage.arguments for stage in plan.stages for word in asked)


def test_the_file_may_ask_for_tables_by_itself() -> None:
    model = example_model()
    frontend = model.frontend.model_copy(update={"log_stats": True})
    assert "--log-stats" in local_plan(replace(model, frontend=frontend), place()).frontend.arguments
    assert "--log-stats" not in local_plan(model, place()).frontend.arguments


def test_the_frontend_is_told_from_where_media_may_come() -> None:
    told = local_plan(example_model(), place(media=MediaSettings(folders=(Path("/media"),)))).frontend.arguments
    assert told[told.index("--media-folder") + 1] == "/media"
    assert "--media-folder" not in local_plan(example_model(), place()).frontend.arguments
