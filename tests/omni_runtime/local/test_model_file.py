"""What the command line says over a model file, and old stage files in its place."""

import shutil
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest

from omni_contract.api.load import InvalidFileError
from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.resolve.graph import preset_of, stage_graph
from omni_runtime.local.devices import Machine
from omni_runtime.local.errors import InputError
from omni_runtime.local.model_file import model_of, overridden
from omni_runtime.local.serve import resolve_here
from omni_runtime.local.settings import ServeSettings, add_arguments, settings_from
from tests.layout.source import CHECKOUT
from tests.support.old_stage_files import old_stage_file

EXAMPLES = CHECKOUT / "examples"
OLD_FILES = CHECKOUT / "tests" / "omni_contract" / "convert" / "old"


def settings(*arguments: object) -> ServeSettings:
    parser = ArgumentParser()
    add_arguments(parser)
    return settings_from(parser.parse_args([str(argument) for argument in arguments]))


def served(*arguments: object) -> OmniModelSpec:
    return model_of(settings(*arguments), print).spec


def family(**stage: Any) -> OmniModelSpec:
    data = {"family": "qwen2.5-omni", "model": {"source": "pvc://models/m"}, "stages": [stage] if stage else []}
    return OmniModelSpec.model_validate(data)


def ar_of(spec: OmniModelSpec, name: str) -> Any:
    return next(stage for stage in stage_graph(spec, preset_of(spec)).stages if stage.name == name).ar


def test_arguments_of_vllm_lie_over_what_the_file_says_of_the_stage() -> None:
    [stage] = served(EXAMPLES / "tiny-thinker.yaml", "--max-model-len", "128", "--enforce-eager", "--seed", "3").stages
    assert stage.ar is not None
    assert (stage.ar.max_model_length, stage.ar.eager, stage.ar.extra_args) == (128, True, {"seed": 3})
    assert (stage.ar.dtype, stage.resources) != ("auto", None), "the rest stays"


def test_they_reach_the_stages_that_only_the_preset_names() -> None:
    spec = overridden(family(name="talker", ar={"dtype": "float32"}), {"gpu_memory_utilization": 0.4}, None)
    assert [ar_of(spec, name).memory_utilization for name in ("thinker", "talker")] == [0.4, 0.4]
    assert (ar_of(spec, "talker").dtype, ar_of(spec, "talker").part) == ("float32", "talker")
    assert ar_of(spec, "thinker").hidden_layers == (0, -1)


def test_each_argument_becomes_the_field_that_an_old_file_would_give_it() -> None:
    arguments: dict[str, Any] = {"kv_cache_memory_bytes": 1 << 26, "limit_mm_per_prompt": {"image": 2}}
    thinker = ar_of(overridden(family(), {**arguments, "tensor_parallel_size": 2, "dtype": "float16"}, None), "thinker")
    assert (thinker.kv_cache_size, thinker.media_per_prompt.image) == ("67108864", 2)
    assert (thinker.parallelism.tensor, thinker.dtype) == (2, "float16")


def test_the_number_format_is_that_of_every_stage_that_has_one() -> None:
    speech = OmniModelSpec.model_validate({"family": "qwen3-tts", "model": {"source": "pvc://models/m"}})
    painter = OmniModelSpec.model_validate({"family": "qwen-image", "model": {"source": "pvc://models/m"}})
    for model in (speech, painter, family()):
        given = stage_graph(overridden(model, {"dtype": "bfloat16"}, None), preset_of(model)).stages
        exact = {"code2wav": "auto"} if model.family == "qwen2.5-omni" else {}
        assert {stage.name: stage.engine.dtype for stage in given} == {  # type: ignore[union-attr]
            stage.name: "bfloat16" for stage in given
        } | exact


def test_a_number_format_leaves_what_the_file_says_beside_it() -> None:
    spec = overridden(family(name="code2wav", maxBatchSize=3), {"dtype": "float16"}, None)
    [stage] = [stage for stage in spec.stages if stage.name == "code2wav"]
    assert (stage.max_batch_size, stage.engine) == (3, None)


def test_the_time_to_start_is_every_stages() -> None:
    spec = overridden(family(), {}, 77.0)
    assert {stage.startup_timeout_seconds for stage in stage_graph(spec, preset_of(spec)).stages} == {77.0}


def test_the_load_format_is_the_models() -> None:
    assert overridden(family(), {"load_format": "dummy"}, None).model.load_format == "dummy"


def test_without_flags_the_file_is_served_as_it_is() -> None:
    spec = family()
    assert overridden(spec, {}, None) is spec


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_model_len": 1}, "ar.maxModelLength: .* got 1"),
        ({"quantization": "FP 8"}, "ar.quantization"),
        ({"load_format": "gguf"}, "model.loadFormat"),
    ],
)
def test_a_value_that_no_field_takes_is_refused_by_the_field(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        overridden(family(), arguments, None)


def test_a_model_without_ar_stages_has_no_use_for_vllm() -> None:
    with pytest.raises(InputError, match="--max-model-len, --seed: arguments of vLLM, and the model has no ar stage"):
        served(EXAMPLES / "fake-omni.yaml", "--max-model-len", "9", "--seed", "1")


def test_a_model_of_fakes_has_no_number_format() -> None:
    with pytest.raises(InputError, match="--dtype: arguments of vLLM, and the model has no stage with a number format"):
        served(EXAMPLES / "fake-omni.yaml", "--dtype", "bfloat16")


def test_an_old_stage_file_is_served_as_it_converts_with_its_checkpoint_in_a_folder(tmp_path: Path) -> None:
    shutil.copy(OLD_FILES / "qwen2_5_omni.yaml", tmp_path / "old.yaml")
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    old = ("--stage-configs-path", tmp_path / "old.yaml", "--skip-refused")
    chosen = settings(checkpoint, *old, "--device", "cpu", "--max-model-len", "256")
    assert chosen.volumes == (f"models={tmp_path}",)
    told: list[str] = []
    file = model_of(chosen, told.append)
    assert (file.metadata.name, file.spec.model.source) == ("old", "pvc://models/checkpoint")
    assert ar_of(file.spec, "thinker").max_model_length == 256
    assert [stage.name for stage in resolve_here(file, Machine({}), chosen).stages] == ["thinker", "talker", "code2wav"]
    assert len(told) == 8 and all("left out: stage_args[" in line for line in told)
    assert any("old.yaml:12:7: left out: stage_args[0].engine_args.trust_remote_code" in line for line in told)


def test_what_an_old_file_has_and_nobody_can_keep_is_told_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_bytes(old_stage_file({"stage_args[0].engine_args.worker_cls": "a.GPUARWorker"}))
    with pytest.raises(InvalidFileError, match=r"old.yaml:\d+:\d+: .*dotted class paths"):
        model_of(settings("--stage-configs-path", tmp_path / "old.yaml", "--model", "pvc://models/m"), print)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name the model's file"),
        (("m.yaml", "--model", "x"), "--model is for --stage-configs-path"),
        (("here", "--stage-configs-path", "old.yaml", "--model", "there"), "name it once"),
        (("no-such-folder", "--stage-configs-path", "old.yaml"), "name the checkpoint by a folder"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        settings(*arguments)
