"""Flags of vLLM and vLLM-Omni: taken over or refused by name."""

from argparse import ArgumentParser, Namespace
from typing import Any

import pytest

from omni_contract.convert.stage_keys import ENGINE_ARGS
from omni_runtime.local.foreign_flags import OF_OLD_FILES, REFUSED, engine_args_of
from omni_runtime.local.settings import add_arguments

SERVER_FLAGS = (
    *("--port", "--stage-configs-path", "--stage-id", "--headless", "-oma", "-omp", "--stage-init-timeout"),
    *("--log-stats", "--trust-remote-code", "--enforce-eager", "--gpu-memory-utilization", "--uvicorn-log-level"),
    *("--tts-max-instructions-length", "--cfg-parallel-size", "--usp", "--use-hsdp", "--hsdp-shard-size"),
    *("--hsdp-replicate-size", "--quantization", "--quantization-config", "--enable-cpu-offload"),
    *("--enable-layerwise-offload", "--layerwise-num-gpu-layers", "--omni", "--model", "--worker-backend"),
    *("--ray-address", "--limit-mm-per-prompt"),
)
"""Of `vllm serve MODEL --omni`, as the sources list them."""


def parser() -> ArgumentParser:
    made = ArgumentParser(prog="omni serve")
    add_arguments(made)
    return made


def read(*arguments: str) -> Namespace:
    return parser().parse_args(["model.yaml", *arguments])


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        read(*arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("flag", SERVER_FLAGS)
def test_each_flag_of_the_old_server_is_known_by_its_name(flag: str) -> None:
    assert flag in parser()._option_string_actions


@pytest.mark.case("runtime:A23")
@pytest.mark.parametrize("flag", REFUSED)
def test_a_flag_that_cannot_be_kept_is_refused_with_the_reason(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{flag} is not supported: {REFUSED[flag]}" in refusal(capsys, flag, "1")
    assert REFUSED[flag] in refusal(capsys, flag)


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        (("--enforce-eager",), {"enforce_eager": True}),
        (("--no-enforce-eager",), {"enforce_eager": False}),
        (("--enable-prefix-caching",), {"enable_prefix_caching": True}),
        (("--no-enable-prefix-caching",), {"enable_prefix_caching": False}),
        (("--enable-chunked-prefill",), {"enable_chunked_prefill": True}),
        (("--no-enable-chunked-prefill",), {"enable_chunked_prefill": False}),
        (("--gpu-memory-utilization", "0.5"), {"gpu_memory_utilization": 0.5}),
        (("--max-model-len=512",), {"max_model_len": 512}),
        (("--quantization", "fp8"), {"quantization": "fp8"}),
        (("--limit-mm-per-prompt", '{"image": 2}'), {"limit_mm_per_prompt": {"image": 2}}),
        (("--limit-mm-per-prompt", "image=2,video=1"), {"limit_mm_per_prompt": {"image": 2, "video": 1}}),
        (("--compilation-config", '{"mode": 0}'), {"compilation_config": {"mode": 0}}),
        (("--distributed-executor-backend", "mp"), {"distributed_executor_backend": "mp"}),
        (("--no-trust-remote-code",), {"trust_remote_code": False}),
        (("--seed", "1", "--block-size", "32"), {"seed": 1, "block_size": 32}),
        (("--omni",), {}),
    ],
)
@pytest.mark.case("runtime:A25")
def test_an_argument_of_vllm_is_taken_with_its_value(arguments: tuple[str, ...], taken: dict[str, Any]) -> None:
    assert engine_args_of(read(*arguments)) == taken


def test_every_argument_of_vllm_that_a_stage_file_may_have_is_a_flag() -> None:
    flags = parser()._option_string_actions
    missing = [name for name in ENGINE_ARGS if f"--{name.replace('_', '-')}" not in flags]
    assert set(missing) == OF_OLD_FILES


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--trust-remote-code",), "--trust-remote-code is not supported: code of a checkpoint does not run here"),
        (("--distributed-executor-backend", "ray"), "without Ray"),
        (("--max-model-len", "long"), "invalid int value"),
        (("--limit-mm-per-prompt", "many"), "send a JSON object, got many"),
        (("--prot", "80"), "unrecognized arguments: --prot"),
    ],
)
def test_a_value_that_cannot_be_kept_is_refused(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refusal(capsys, *arguments)
