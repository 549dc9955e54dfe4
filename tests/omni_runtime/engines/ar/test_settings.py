"""A stage file in vLLM's words."""

from collections.abc import Mapping
from typing import Any

import pytest

from omni_contract.accelerators import Vendor
from omni_contract.api.v1alpha1 import ArEngine, FakeEngine
from omni_runtime.engines.ar.settings import ArSettings, settings_of
from omni_runtime.engines.protocol import UnusableEngineError
from tests.omni_runtime.worker.stage_files import stage_file


def settings(vendor: Vendor = Vendor.CPU, family: str | None = None, stage: str = "thinker", **block) -> ArSettings:
    return settings_of(stage_file(stage, ArEngine(**block), vendor=vendor, family=family))


def test_on_cpus_the_cache_is_small_and_nothing_is_compiled():
    arguments = settings().engine_arguments()
    assert (arguments["kv_cache_memory_bytes"], arguments["enforce_eager"]) == (2**30, True)
    assert not arguments["enable_sleep_mode"]
    assert settings().environment["TORCHDYNAMO_DISABLE"] == "1"


def test_on_a_device_the_cache_takes_what_is_left_and_steps_are_compiled():
    arguments = settings(Vendor.NVIDIA, memory_utilization=0.5).engine_arguments()
    assert "kv_cache_memory_bytes" not in arguments
    assert (arguments["gpu_memory_utilization"], arguments["enforce_eager"]) == (0.5, False)
    assert arguments["enable_sleep_mode"]
    assert "TORCHDYNAMO_DISABLE" not in settings(Vendor.NVIDIA).environment


@pytest.mark.parametrize(("fraction", "wanted"), [(None, 0.9), (0.4, 0.4), (1.0, 0.9)])
def test_a_stage_that_shares_its_device_takes_no_more_than_its_part(fraction, wanted):
    file = stage_file("thinker", ArEngine(), vendor=Vendor.NVIDIA).model_copy(update={"memory_fraction": fraction})
    assert settings_of(file).engine_arguments()["gpu_memory_utilization"] == wanted


@pytest.mark.parametrize(
    ("field", "value", "argument", "wanted"),
    [
        ("eager", True, "enforce_eager", True),
        ("eager", False, "enforce_eager", False),
        ("prefix_caching", False, "enable_prefix_caching", False),
        ("chunked_prefill", False, "enable_chunked_prefill", False),
        ("kv_cache_size", "64Mi", "kv_cache_memory_bytes", 64 * 2**20),
        ("max_model_length", 512, "max_model_len", 512),
        ("max_sequences", 7, "max_num_seqs", 7),
        ("max_batched_tokens", 1024, "max_num_batched_tokens", 1024),
        ("quantization", "fp8", "quantization", "fp8"),
        ("dtype", "bfloat16", "dtype", "bfloat16"),
        ("media_per_prompt", {"image": 1}, "limit_mm_per_prompt", {"image": 1, "audio": 16, "video": 4}),
        ("extra_args", {"swap_space": 2}, "swap_space", 2),
    ],
)
def test_each_field_is_an_argument_of_vllm(field, value, argument, wanted):
    assert settings(Vendor.NVIDIA, **{field: value}).engine_arguments()[argument] == wanted


def test_parallelism_is_passed_on_and_decides_in_which_processes_the_model_runs():
    one = settings(Vendor.NVIDIA).engine_arguments()
    many = settings(Vendor.NVIDIA, parallelism={"tensor": 2, "pipeline": 2, "data": 3, "expert": True})
    arguments = many.engine_arguments()
    sizes = [arguments[f"{kind}_parallel_size"] for kind in ("tensor", "pipeline", "data")]
    assert (sizes, arguments["enable_expert_parallel"]) == ([2, 2, 3], True)
    assert str(one["distributed_executor_backend"]).endswith(".OneProcess")
    assert str(arguments["distributed_executor_backend"]).endswith(".ProcessPerDevice")


def test_adapters_switch_lora_on_and_on_cpus_one_more_slot_stays_empty():
    loras = [{"name": "poet", "path": "adapters/poet"}, {"name": "judge", "path": "adapters/judge"}]
    arguments = settings(Vendor.NVIDIA, loras=loras, max_lora_rank=20).engine_arguments()
    assert (arguments["enable_lora"], arguments["max_loras"], arguments["max_lora_rank"]) == (True, 2, 32)
    assert settings(loras=loras).engine_arguments()["max_loras"] == 3
    assert settings().engine_arguments()["enable_lora"] is False


def test_an_extra_argument_that_a_field_sets_is_refused():
    with pytest.raises(UnusableEngineError, match="extraArgs sets dtype, which fields of ar set"):
        settings(extra_args={"dtype": "float16"}).engine_arguments()


def test_another_engines_block_is_a_defect():
    with pytest.raises(TypeError, match="has a FakeEngine block"):
        settings_of(stage_file("thinker", FakeEngine()))


def test_states_of_inner_layers_are_taken_from_graphs_that_nothing_compiled():
    outer, inner = (settings(Vendor.NVIDIA, hidden_layers=layers).engine_arguments() for layers in ([0, -1], [0, 4]))
    assert "compilation_config" not in outer and outer["enforce_eager"] is False
    assert inner["enforce_eager"] is False
    assert graphs(inner) == (0, "FULL")
    assert (outer["additional_config"], inner["additional_config"]) == ({"omni_layers": []}, {"omni_layers": [4]})
    assert "compilation_config" not in settings(Vendor.NVIDIA, hidden_layers=[4], eager=True).engine_arguments()


def test_graphs_hold_prompts_where_attention_is_planned_as_it_was_captured():
    assert graphs(settings(Vendor.NVIDIA, hidden_layers=[4]).engine_arguments()) == (0, "FULL")
    assert graphs(settings(Vendor.ROCM, hidden_layers=[4]).engine_arguments()) == (0, "FULL_DECODE_ONLY")


def graphs(arguments: Mapping[str, Any]) -> tuple[int, str]:
    return arguments["compilation_config"]["mode"], arguments["compilation_config"]["cudagraph_mode"]


def test_states_come_from_one_process():
    assert settings(hidden_layers=[0]).environment["VLLM_USE_V2_MODEL_RUNNER"] == "0"
    with pytest.raises(UnusableEngineError, match=r"set parallelism\.pipeline to 1"):
        settings(Vendor.NVIDIA, hidden_layers=[-1], parallelism={"pipeline": 2}).engine_arguments()


def test_a_familys_part_says_which_states_leave_and_whether_rows_come_in():
    thinker, talker = (settings(family="qwen2.5-omni", stage=stage) for stage in ("thinker", "talker"))
    assert thinker.hidden_layers == (0, -1)
    arguments = talker.engine_arguments()
    assert (arguments["enable_prefix_caching"], arguments["skip_tokenizer_init"]) == (False, True)
    assert "Qwen2_5OmniTalkerForConditionalGeneration" in arguments["additional_config"]["omni_models"]


def test_a_part_may_have_another_name_than_its_stage():
    assert settings(family="qwen2.5-omni", stage="mouth", part="talker").model.takes_rows
    with pytest.raises(UnusableEngineError, match=r'no part "mouth" .* one of: "thinker", "talker"'):
        settings(family="qwen2.5-omni", stage="mouth")
    with pytest.raises(UnusableEngineError, match="has no ar stages"):
        settings(family="qwen-image")


def test_a_stage_takes_no_more_talkers_than_it_has_places_for():
    file = stage_file("talker", ArEngine(max_sequences=4), family="qwen2.5-omni", max_in_flight=5)
    with pytest.raises(UnusableEngineError, match="maxInFlight is 5 and maxSequences 4"):
        settings_of(file).engine_arguments()


def test_a_talker_of_ours_runs_on_one_device():
    with pytest.raises(UnusableEngineError, match='part "talker" runs on one device'):
        settings(family="qwen2.5-omni", stage="talker", parallelism={"tensor": 2}).engine_arguments()
