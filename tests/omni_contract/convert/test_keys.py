"""Every key of the tables, in a file of its own: it becomes what the table says, or is refused as the table says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from omni_contract.convert import Choices, convert
from omni_contract.convert.keys import Key
from omni_contract.convert.reference import SECTIONS
from omni_contract.convert.stage_keys import ENGINE_ARGS
from tests.support.old_stage_files import THINKER, old_stage_file

CHOICES = Choices("old.yaml", name="omni", source="pvc://models/omni", pool="h100")
EDGE = "runtime.edges[0]"
WIRED = {"stage_args[0].output_connectors": {"to_stage_1": "wire"}}
STORE = {"name": "MooncakeConnector", "extra": {"master": "master:50051"}}
ENGINE = {"name": "MooncakeTransferEngineConnector", "extra": {"protocol": "tcp"}}
SHM = {"name": "SharedMemoryConnector", "extra": {}}
YUANRONG = {"name": "YuanrongConnector", "extra": {}}
DEVICE = {"accelerator": {"pool": "h100"}}
TEXT = {"output": {"modality": "text"}}


@dataclass(frozen=True)
class Place:
    """Where a section stands in a file, and what else the file needs for it."""

    path: str
    around: Mapping[str, Any]


def _extra(connector: Mapping[str, Any]) -> Place:
    return Place("runtime.connectors.wire.extra", {"runtime.connectors.wire": connector, **WIRED})


LINK = {"connectors": [{"from_stage": 0, "to_stage": 1, "spec": YUANRONG}]}
PLACES: Mapping[str, Place] = {
    "The file": Place("", {}),
    "runtime": Place("runtime", {}),
    "runtime.defaults": Place("runtime.defaults", {}),
    "runtime.edges[]": Place(EDGE, {"runtime.edges": [{"from": 0, "to": 1}]}),
    "runtime.connectors.NAME and connectors[].spec": Place(
        "runtime.connectors.wire", {"runtime.connectors.wire": YUANRONG, **WIRED}
    ),
    "extra of SharedMemoryConnector": _extra(SHM),
    "extra of MooncakeConnector and MooncakeStoreConnector": _extra(STORE),
    "extra of MooncakeTransferEngineConnector": _extra(ENGINE),
    "extra of YuanrongConnector": _extra(YUANRONG),
    "connectors[]": Place("connectors[0]", LINK),
    "stage_args[]": Place("stage_args[0]", {}),
    "stage_args[].runtime": Place("stage_args[0].runtime", {}),
    "stage_args[].engine_args": Place("stage_args[0].engine_args", {}),
    "stage_args[].tts_args": Place("stage_args[0].tts_args", {}),
    "stage_args[].default_sampling_params": Place("stage_args[0].default_sampling_params", {}),
}

STAGE = "stage_args[]"
NAMED = "runtime.connectors.NAME and connectors[].spec"
ARGS = "stage_args[].engine_args"
WHOLE = {"edges.0.streaming": {"enabled": False}}
FIELDS: Mapping[tuple[str, str], tuple[Any, Mapping[str, Any]]] = {
    ("The file", "stage_args"): ([THINKER], {"stages": [{"name": "thinker", "ar": {}, **DEVICE, **TEXT}]}),
    ("The file", "async_chunk"): (True, {"edges.0.streaming": {"enabled": True, "chunkFrames": 25}}),
    ("The file", "runtime"): ({"defaults": {"max_inflight": 3}}, {"stages.0.maxInFlight": 3}),
    ("The file", "connectors"): (LINK["connectors"], {"edges.0.connector": "edge-0-1"}),
    ("runtime", "defaults"): ({"max_inflight": 3}, {"stages.1.maxInFlight": 3}),
    ("runtime", "edges"): ([{"from": 0, "to": 1}], {"edges.0": {"from": "thinker", "to": "code2wav"}}),
    ("runtime", "connectors"): ({"wire": YUANRONG}, {"connectors.0": {"name": "wire", "yuanrong": {}}}),
    ("runtime.defaults", "window_size"): (-1, WHOLE),
    ("runtime.defaults", "max_inflight"): (3, {"stages.0.maxInFlight": 3, "stages.1.maxInFlight": 3}),
    ("runtime.edges[]", "from"): ("0", {"edges.0.from": "thinker"}),
    ("runtime.edges[]", "to"): ("1", {"edges.0.to": "code2wav"}),
    ("runtime.edges[]", "window_size"): (-1, WHOLE),
    (NAMED, "name"): ("YuanrongConnector", {"edges.0.connector": "wire", "connectors.0.yuanrong": {}}),
    (NAMED, "extra"): ({"port": 9}, {"connectors.0.yuanrong": {"port": 9}}),
    ("connectors[]", "from_stage"): ("0", {"edges.0.connector": "edge-0-1"}),
    ("connectors[]", "to_stage"): ("1", {"edges.0.connector": "edge-0-1"}),
    ("connectors[]", "spec"): (STORE, {"connectors.0.mooncakeStore": {"master": "master:50051"}}),
    (STAGE, "stage_id"): (7, {"stages.1.name": "thinker"}),
    (STAGE, "runtime"): ({"max_batch_size": 2}, {"stages.0.maxBatchSize": 2}),
    (STAGE, "engine_args"): ({"worker_type": "ar"}, {"stages.0.name": "stage-0"}),
    (STAGE, "engine_input_source"): ([1], {"edges.0": {"from": "code2wav", "to": "thinker"}}),
    (STAGE, "final_output"): (True, {"stages.0.output": {"modality": "text"}}),
    (STAGE, "final_output_type"): ("audio", {"stages.0.output": {"modality": "audio"}}),
    (STAGE, "default_sampling_params"): ({"seed": 1}, {"stages.0.sampling": {"seed": 1}}),
    (STAGE, "output_connectors"): ({"to_stage_1": "wire"}, {"edges.0.connector": "wire"}),
    (STAGE, "input_connectors"): ({"from_stage_1": "wire"}, {"edges.0.connector": "wire"}),
    ("stage_args[].runtime", "devices"): ("2", {"stages.0.accelerator": {"pool": "h100", "count": 1}}),
    (ARGS, "model_stage"): ("talker", {"stages.0.name": "talker", "edges.0.from": "talker"}),
    (ARGS, "model_arch"): ("Qwen2_5OmniForConditionalGeneration", {"family": "qwen2.5-omni"}),
    (ARGS, "worker_type"): ("ar", {"stages.0.ar": {}}),
    (ARGS, "engine_output_type"): ("image", {"stages.0.output": {"modality": "image"}}),
    (ARGS, "load_format"): ("dummy", {"model.loadFormat": "dummy"}),
    (ARGS, "gpu_memory_utilization"): (
        0.5,
        {"stages.0.accelerator.memoryFraction": 0.5, "stages.0.ar.memoryUtilization": 0.5},
    ),
    (ARGS, "dtype"): ("float16", {"stages.0.ar.dtype": "float16"}),
    (ARGS, "kv_cache_memory_bytes"): (4096, {"stages.0.ar.kvCacheSize": "4096"}),
    ("extra of YuanrongConnector", "get_sub_timeout_ms"): (1500, {"connectors.0.yuanrong.getTimeoutSeconds": 1.5}),
}
"""Keys whose values become something else, with an example of each."""
BESIDE: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("The file", "stage_args"): {},
    (STAGE, "stage_id"): {"stage_args[1].engine_input_source": [7]},
    (STAGE, "engine_input_source"): {
        "stage_args[1].engine_input_source": None,
        "stage_args[0].final_output": True,
    },
    (STAGE, "final_output_type"): {"stage_args[0].final_output": True},
    (ARGS, "engine_output_type"): {"stage_args[0].final_output": True},
    (ARGS, "model_arch"): {"stage_args[1]": None},
    (ARGS, "load_format"): {"stage_args[1].engine_args.load_format": "dummy"},
    (ARGS, "tensor_parallel_size"): {"stage_args[0].runtime.devices": "0,1"},
    (STAGE, "output_connectors"): {"runtime.connectors.wire": YUANRONG},
    (STAGE, "input_connectors"): {
        "runtime.connectors.wire": YUANRONG,
        "stage_args[1].engine_input_source": None,
        "stage_args[0].engine_input_source": [1],
        "stage_args[0].final_output": True,
    },
}
"""What a file needs besides, so that it is sound with the key."""
SAMPLES: Mapping[str, Any] = {
    "bool": True,
    "integer": 1,
    "number": 0.5,
    "text": "some",
    "id": 1,
    "ids": [0],
    "list": [1],
    "map": {"image": 1},
    "any": 1,
}
OF_KEY: Mapping[str, Any] = {
    "max_model_len": 896,
    "max_num_batched_tokens": 896,
    "stop": ["end"],
    "tensor_parallel_size": 2,
    "host": "10.0.0.1",
    "proto": "rdma",
    "protocol": "rdma",
    "master": "other:1",
    "memory_pool_device": "cpu",
}
BASES: Mapping[str, str] = {
    "extra of MooncakeConnector and MooncakeStoreConnector": "connectors.0.mooncakeStore.",
    "extra of MooncakeTransferEngineConnector": "connectors.0.mooncakeTransferEngine.",
    "extra of YuanrongConnector": "connectors.0.yuanrong.",
}
KEYS = [
    pytest.param(section, key, id=f"{section}-{key.name}")
    for section, keys in SECTIONS.items()
    for key in keys.values()
]
KEPT = [param for param in KEYS if not param.values[1].is_refused]
REFUSED = [param for param in KEYS if param.values[1].refused]


def _file(section: str, key: Key, value: Any) -> bytes:
    place = PLACES[section]
    path = f"{place.path}.{key.name}".lstrip(".")
    return old_stage_file({**place.around, **BESIDE.get((section, key.name), {}), path: value})


def _spec(content: bytes) -> dict[str, Any]:
    made = convert(content, CHOICES)
    assert made.findings == ()
    spec: dict[str, Any] = yaml.safe_load(made.text)["spec"]
    return spec


def _at(spec: Any, path: str) -> Any:
    for step in path.split("."):
        spec = spec[int(step)] if isinstance(spec, list) else spec[step]
    return spec


def _expected(section: str, key: Key) -> tuple[Any, Mapping[str, Any]]:
    """An example of a kept key and the fields that it must show up in, by what the table says."""
    if (section, key.name) in FIELDS:
        return FIELDS[section, key.name]
    value = OF_KEY.get(key.name, SAMPLES[key.takes])
    field = key.becomes.partition(";")[0]
    field = f"{field}.{key.name}" if field == "ar.extraArgs" else field
    return value, {
        BASES.get(section, "stages.0.") + field: str(value) if field.endswith("Size") and section in BASES else value
    }


@pytest.mark.parametrize(("section", "key"), KEPT)
def test_a_key_becomes_what_the_table_says(section: str, key: Key) -> None:
    if key.becomes.startswith("nothing"):
        value = key.only[0] if key.only else OF_KEY.get(key.name, SAMPLES[key.takes])
        content = _file(section, key, value)
        without = old_stage_file(PLACES[section].around)

        assert _spec(content) == _spec(without)
    elif key.becomes != "what its keys become" or (section, key.name) in FIELDS:
        value, fields = _expected(section, key)

        spec = _spec(_file(section, key, value))

        assert {path: _at(spec, path) for path in fields} == fields


@pytest.mark.parametrize(("section", "key"), REFUSED)
def test_a_refused_key_is_told_with_its_reason_and_the_way_out(section: str, key: Key) -> None:
    value = 17 if key.takes == "integer" else "a.b.C" if key.takes == "text" else {}
    if key.only and key.takes == "bool":
        value = not key.only[0]

    (found,) = convert(_file(section, key, value), CHOICES).findings

    assert found.path.rpartition(".")[2] == key.name
    assert found.message.endswith(f"{key.refused}; {key.way_out(value)}")


@pytest.mark.parametrize("section", SECTIONS)
def test_values_of_another_type_are_told_with_what_is_wanted(section: str) -> None:
    place = PLACES[section]
    typed = [key for key in SECTIONS[section].values() if not key.is_refused and key.takes != "any"]
    wrong = {f"{place.path}.{key.name}".lstrip("."): 3 if key.takes in ("text", "map") else {"a": 1} for key in typed}

    findings = convert(old_stage_file({**place.around, **wrong}), CHOICES).findings

    told = {found.path.rpartition(".")[2] for found in findings if " is not " in found.message}
    assert told >= {key.name for key in typed}


@pytest.mark.parametrize("key", [key for key in ENGINE_ARGS.values() if key.codec], ids=lambda key: key.name)
def test_a_codec_leaves_out_what_only_a_language_model_has_and_says_why(key: Key) -> None:
    value = 1 if key.name == "tensor_parallel_size" else OF_KEY.get(key.name, SAMPLES[key.takes])

    made = convert(old_stage_file({f"stage_args[1].engine_args.{key.name}": value}), CHOICES)

    assert made.findings == ()
    assert f"# left out: {key.name}: " in made.text
    assert key.codec in made.text.replace("\n    #", "")
    assert yaml.safe_load(made.text)["spec"]["stages"][1]["generation"] == {}
