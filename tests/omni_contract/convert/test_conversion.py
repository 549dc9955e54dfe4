import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_contract.api.load import read_models
from omni_contract.api.yaml_file import MAX_BYTES
from omni_contract.convert import Choices, Conversion, convert
from omni_contract.convert.stage_keys import STAGE
from omni_contract.resolve.graph import preset_of, stage_graph
from tests.support.old_stage_files import CODEC, THINKER, old_stage_file

CHOICES = Choices("old.yaml", source="pvc://models/omni", pool="h100")
SHM = {"name": "SharedMemoryConnector"}


def _convert(changes: dict[str, Any] | None = None, choices: Choices = CHOICES) -> Conversion:
    return convert(old_stage_file(changes), choices)


def _spec(changes: dict[str, Any] | None = None) -> dict[str, Any]:
    made = _convert(changes)
    assert made.findings == ()
    spec: dict[str, Any] = yaml.safe_load(made.text)["spec"]
    return spec


def _messages(changes: dict[str, Any]) -> list[str]:
    return [str(found) for found in _convert(changes).findings]


def test_the_smallest_file_becomes_a_model_of_two_stages() -> None:
    spec = _spec()

    assert [stage["name"] for stage in spec["stages"]] == ["thinker", "code2wav"]
    assert spec["edges"] == [{"from": "thinker", "to": "code2wav"}]
    assert spec["stages"][1]["output"] == {"modality": "audio"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"stage_args: [", "this is not YAML"),
        (b"\xff\xfe\x00", "the file is not UTF-8 text"),
        (b"", "the file holds 0 documents"),
        (b"a: 1\n---\nb: 2\n", "the file holds 2 documents"),
        (b"- 1\n", "the file is no stage configuration file of vLLM-Omni"),
        (b"replicas: 3\n", "the file is no stage configuration file of vLLM-Omni"),
        (b"kind: OmniModel\n", "the file is an OmniModel already"),
        (b"#" * (MAX_BYTES + 1), "the file is larger than 1024 KiB"),
        (b"a: 1\nstage_args: []\n", 'a: unknown key "a"'),
        (b"stage_args: []\n", "stage_args: there are no stages"),
        (b"stage_args: {}\n", "stage_args: a map is not a list"),
        (b"stage_args: [3]\n", "stage_args[0]: 3 is not a map of keys and values"),
        (b"stage_args: !!python/object:os.system []\n", 'the tag "tag:yaml.org,2002:python/object:os.system"'),
    ],
)
def test_a_wrong_file_is_told(content: bytes, told: str) -> None:
    made = convert(content, CHOICES)

    assert made.text == ""
    assert any(str(found).startswith(told) for found in made.findings), made.findings


def test_anchors_that_would_fill_the_memory_are_refused() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    (found,) = convert("\n".join([*levels, "stage_args: *a8"]).encode(), CHOICES).findings

    assert "more than 20000 values, aliases counted" in found.message


def test_all_problems_come_at_once_each_with_its_line() -> None:
    content = old_stage_file(
        {
            "async_chunks": True,
            "stage_args[0].engine_args.gpu_memory_utilisation": 0.5,
            "stage_args[0].engine_args.worker_cls": "vllm_omni.worker.gpu_ar_worker.GPUARWorker",
            "stage_args[1].engine_input_source": [4],
            "stage_args[1].runtime.process": "yes please",
        }
    )
    lines = content.decode().splitlines()

    findings = convert(content, CHOICES).findings

    said = {lines[found.position.line - 1].split(":")[0].strip(): str(found) for found in findings}
    assert 'unknown key "async_chunks" (did you mean "async_chunk"?)' in said["async_chunks"]
    assert '(did you mean "gpu_memory_utilization"?)' in said["gpu_memory_utilisation"]
    assert said["worker_cls"].endswith("remove it, and set engine_args.worker_type: ar")
    assert "there is no stage with stage_id 4; the stages are: 0, 1" in said["engine_input_source"]
    assert '"yes please" is not true or false' in said["process"]
    assert len(findings) == 5


def test_a_key_that_nobody_knows_may_be_an_argument_of_vllm() -> None:
    (told,) = _messages({"stage_args[0].engine_args.zzz": 1})

    assert told.endswith("if it is an argument of vLLM, remove it here and add it to ar.extraArgs of the result")


def test_a_stage_that_names_no_engine_is_told() -> None:
    (told,) = _messages({"stage_args[0].engine_args.worker_type": None})

    assert "nothing says which engine the stage needs; set worker_type to ar or generation" in told


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("vllm_omni.worker.gpu_ar_worker.GPUARWorker", "ar"),
        ("vllm_omni.worker.gpu_generation_worker.GPUGenerationWorker", "generation"),
    ],
)
def test_a_class_path_that_is_left_out_still_tells_the_engine(path: str, kind: str) -> None:
    choices = Choices("old.yaml", skip_refused=True)

    made = _convert({"stage_args[0].engine_args": {"worker_cls": path}}, choices)

    assert kind in yaml.safe_load(made.text)["spec"]["stages"][0]


def test_stages_that_share_a_device_share_a_pod_whose_devices_count_from_0() -> None:
    shared = {
        "stage_args[0].runtime.devices": "4,6",
        "stage_args[0].engine_args.tensor_parallel_size": 2,
        "stage_args[0].engine_args.gpu_memory_utilization": 0.6,
        "stage_args[1].runtime.devices": "6",
        "stage_args[1].engine_args.gpu_memory_utilization": 0.4,
    }

    spec = _spec(shared)

    assert spec["placement"] == {"colocate": [["thinker", "code2wav"]]}
    assert [stage["accelerator"]["devices"] for stage in spec["stages"]] == [[0, 1], [1]]


def test_more_than_all_of_a_device_is_refused_by_device_and_stages() -> None:
    """The sources' own file for Qwen3-Omni asks for 1.1 of a device."""
    (told,) = _messages(
        {
            "stage_args[0].runtime.devices": "1",
            "stage_args[0].engine_args.gpu_memory_utilization": 0.6,
            "stage_args[1].runtime.devices": "1",
            "stage_args[1].engine_args.gpu_memory_utilization": 0.5,
        }
    )

    assert 'stages "thinker" and "code2wav" share device 1 and take 1.1 of its memory together; lower one' in told


def test_a_stage_that_shares_a_device_must_say_how_much_of_it() -> None:
    told = _messages({"stage_args[0].runtime.devices": "1", "stage_args[1].runtime.devices": "1"})

    assert len(told) == 2
    assert all("this one does not say how much of it it takes; set gpu_memory_utilization" in one for one in told)


def test_devices_and_parallel_sizes_must_agree() -> None:
    (told,) = _messages({"stage_args[0].runtime.devices": "0,1,2"})

    assert "the stage has 3 devices, but its parallel sizes" in told


def test_a_codec_on_two_devices_is_refused() -> None:
    (told,) = _messages({"stage_args[1].runtime.devices": "0,1"})

    assert "a codec runs on one device" in told


def test_shared_memory_is_named_where_stages_share_a_pod_and_automatic_elsewhere() -> None:
    wired = {"runtime.connectors.wire": SHM, "stage_args[0].output_connectors": {"to_stage_1": "wire"}}
    together = {
        f"stage_args[{number}].{path}": value
        for number in (0, 1)
        for path, value in (("runtime.devices", "0"), ("engine_args.gpu_memory_utilization", 0.5))
    }

    assert _spec(wired | together)["edges"][0]["connector"] == "shm"
    assert "connector" not in _spec(wired)["edges"][0]
    assert "# Was SharedMemoryConnector." in _convert(wired).text


def test_two_connectors_for_one_edge_are_told() -> None:
    (told,) = _messages(
        {
            "runtime.connectors": {"wire": SHM, "radio": {"name": "YuanrongConnector"}},
            "stage_args[0].output_connectors": {"to_stage_1": "wire"},
            "stage_args[1].input_connectors": {"from_stage_0": "radio"},
        }
    )

    assert 'the edge has connector "wire" already and gets "radio" here; keep one' in told


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"stage_args[0].output_connectors": {"to_stage_1": "wier"}}, '"wier" is no connector of runtime.connectors'),
        (
            {"stage_args[0].output_connectors": {"stage_1": "wire"}},
            'unknown key "stage_1"; the keys here are to_stage_0',
        ),
        ({"stage_args[1].output_connectors": {"to_stage_0": "wire"}}, "no edge leads from stage 1 to stage 0"),
        ({"runtime.connectors.wire": {"name": "MooncakeConector"}}, '(did you mean "MooncakeConnector"?)'),
        ({"runtime.connectors.wire": {"extra": {}}}, "the key name is missing"),
        ({"runtime.edges": [{"from": 0}]}, 'the key "to" is missing'),
        ({"runtime.edges": [{"from": 0, "to": 9}]}, "there is no stage with stage_id 9"),
        ({"stage_args[1].stage_id": 0}, "stage_id 0 is that of thinker, too; each needs its own"),
        ({"stage_args[1].stage_id": None}, 'the key "stage_id" is missing'),
        ({"stage_args[0].engine_args.worker_type": "arr"}, '"arr" is not one of: ar, generation'),
        ({"stage_args[0].engine_args.model_arch": "Bagel"}, '"Bagel" is the architecture of no family'),
        ({"stage_args[1].final_output_type": "sound"}, '"sound" is not one of: text, image, audio, video'),
        ({"stage_args[1].final_output": False}, "feeds no other stage and has no output"),
        ({"stage_args[0].engine_args.load_format": "gguf"}, "checkpoints are read as they are"),
        ({"stage_args[1].engine_args.load_format": "dummy"}, "a model has one load_format"),
        ({"stage_args[0].engine_args.max_num_seqs": 0}, "0 is too small; the least is 1"),
        ({"stage_args[0].runtime": {"max_batch_size": 8, "max_inflight": 1}}, "a batch of 8 can never fill"),
    ],
)
def test_what_does_not_go_together_is_told(changes: dict[str, Any], told: str) -> None:
    declared = {"runtime.connectors.wire": SHM} if "runtime.connectors.wire" not in changes else {}

    messages = _messages(declared | changes)

    assert any(told in message for message in messages), messages


def test_what_the_result_would_be_refused_for_is_told_at_the_old_stage() -> None:
    content = old_stage_file({"stage_args[1].runtime.max_batch_size": 9000})

    (found,) = convert(content, CHOICES).findings

    assert "stage_id: 1" in content.decode().splitlines()[found.position.line - 1]


def test_a_source_that_is_no_claim_is_refused_as_in_any_model_file() -> None:
    (found,) = _convert(choices=Choices("old.yaml", source="Qwen/Qwen2.5-Omni-7B")).findings

    assert found.message.startswith('source "Qwen/Qwen2.5-Omni-7B" is a model on a hub')


def test_what_cannot_be_known_is_a_default_with_a_comment() -> None:
    text = _convert(choices=Choices("some/where/Qwen2_5 omni.yaml")).text

    assert yaml.safe_load(text)["metadata"]["name"] == "qwen2-5-omni"
    assert "# Where the checkpoint is (omni convert --model)" in text
    assert "source: pvc://models/qwen2-5-omni\n" in text
    assert "# No pool is named (omni convert --pool)" in text


@pytest.mark.parametrize("file", ["1.yaml", "-.yaml", "<stdin>", f"{'long-' * 20}.yml", "ä.yaml"])
def test_any_file_name_makes_a_name_for_the_model(file: str) -> None:
    assert _convert(choices=Choices(file)).findings == ()


def test_a_family_without_a_preset_is_a_comment_and_is_told() -> None:
    architecture = {"stage_args[0].engine_args.model_arch": "Qwen3OmniMoeForConditionalGeneration"}

    made = _convert(architecture, Choices("old.yaml", presets={}))

    assert "# family: qwen3-omni" in made.text
    assert made.notes and made.notes[0].startswith("family qwen3-omni: this release has no preset")


def test_stages_of_two_families_are_told() -> None:
    (told,) = _messages(
        {
            "stage_args[0].engine_args.model_arch": "Qwen3OmniMoeForConditionalGeneration",
            "stage_args[1].engine_args.model_arch": "Qwen2_5OmniForConditionalGeneration",
        }
    )

    assert "the stages are of several families, qwen2.5-omni, qwen3-omni; a model has one" in told


def test_two_stages_of_one_part_keep_the_part_under_names_of_their_own() -> None:
    twice = [dict(THINKER), {**THINKER, "stage_id": 1, "engine_input_source": [0]}]

    stages = _spec({"stage_args": twice})["stages"]

    assert [(stage["name"], stage["ar"]) for stage in stages] == [("thinker", {}), ("stage-1", {"part": "thinker"})]


def test_json_is_read_too() -> None:
    content = json.dumps({"stage_args": [THINKER, CODEC]}).encode()

    assert convert(content, CHOICES) == _convert()


def test_the_order_of_keys_in_the_old_file_does_not_matter() -> None:
    turned = [dict(reversed(CODEC.items())), dict(reversed(THINKER.items()))]

    assert _spec({"stage_args": turned}) == _spec()


ARCHITECTURE = "Qwen2_5OmniForConditionalGeneration"
OMNI_THINKER = {**THINKER, "engine_args": {**THINKER["engine_args"], "model_arch": ARCHITECTURE}}
TALKER = {
    "stage_id": 1,
    "engine_args": {"model_stage": "talker", "worker_type": "ar"},
    "engine_input_source": [0],
    "default_sampling_params": {"stop_token_ids": [8294], "seed": 1},
}
OMNI = {"stage_args": [OMNI_THINKER, TALKER, {**CODEC, "stage_id": 2, "engine_input_source": [1]}]}


def test_a_family_with_a_preset_is_named() -> None:
    made = _convert(OMNI, Choices("old.yaml", skip_refused=True))

    assert yaml.safe_load(made.text)["spec"]["family"] == "qwen2.5-omni"


def test_a_sampling_parameter_that_the_family_does_not_read_is_refused() -> None:
    (told,) = _messages(OMNI)
    made = _convert(OMNI, Choices("old.yaml", skip_refused=True))

    assert 'family "qwen2.5-omni" has no such parameter' in told
    assert yaml.safe_load(made.text)["spec"]["stages"][1]["sampling"] == {"seed": 1}


def test_a_thinker_alone_stays_alone_though_its_family_has_more_stages() -> None:
    made = _convert({"stage_args": [OMNI_THINKER]})

    (loaded,) = read_models(made.text.encode()).models
    spec = loaded.model.spec
    (stage,) = stage_graph(spec, preset_of(spec)).stages
    assert (spec.family, stage.name, stage.ar and stage.ar.part) == ("qwen2.5-omni", "thinker-only", "thinker")


def test_a_part_of_a_family_s_graph_is_refused_and_so_is_a_stage_that_it_does_not_have() -> None:
    missing, unknown = _messages(
        {"stage_args": [OMNI_THINKER, {**TALKER, "engine_args": {"model_stage": "talkre", "worker_type": "ar"}}]}
    )[:2]

    assert "and the file lacks talker, code2wav" in missing
    assert '"talkre" is no stage of family "qwen2.5-omni" (did you mean "talker"?)' in unknown


def test_an_output_that_the_family_gives_in_any_case_cannot_be_switched_off() -> None:
    thinker, *others = OMNI["stage_args"]

    told = _messages({"stage_args": [{**thinker, "final_output": False}, *others]})

    assert any('family "qwen2.5-omni" gives callers what this stage makes; remove it' in one for one in told)


@pytest.mark.parametrize("address", ["127.0.0.1:50051", "localhost:50051", "<MASTER_IP>:50051"])
def test_an_address_that_stages_would_wait_for_in_silence_is_refused(address: str) -> None:
    changes = {
        "runtime.connectors.wire": {
            "name": "MooncakeConnector",
            "extra": {"host": "127.0.0.1", "master": address, "metadata_server": "http://127.0.0.1:8080/metadata"},
        },
        "stage_args[0].output_connectors": {"to_stage_1": "wire"},
    }

    told = _messages(changes)
    made = _convert(changes, Choices("old.yaml", skip_refused=True))

    assert len(told) == 2
    assert all("the stages would wait in silence; name the host that all of them reach" in one for one in told)
    assert yaml.safe_load(made.text)["spec"]["connectors"] == [{"name": "wire", "mooncakeStore": {"managed": True}}]


def test_every_old_file_of_the_sources_converts_with_the_presets_of_this_release() -> None:
    for path in sorted((Path(__file__).parent / "old").glob("*.yaml")):
        made = convert(path.read_bytes(), Choices(path.name, skip_refused=True))

        assert made.findings == (), path.name


ODD_VALUES = st.sampled_from([False, -1, 0, 2.5, 10**30, "", "0,1", "a.b.C", "ä: #x", "\x7f", [], [0], {}, {"a": 1}])
ODD_PLACES = st.sampled_from(
    [
        *("async_chunk", "connectors", "runtime.edges", "runtime.connectors", "runtime.defaults", "stage_args[0]"),
        *(f"stage_args[1].{key}" for key in STAGE),
        *(f"stage_args[1].engine_args.{key}" for key in ("model_stage", "model_arch", "worker_type", "load_format")),
        *("stage_args[1].runtime.devices", "stage_args[1].runtime.max_batch_size"),
    ]
)


@settings(max_examples=30, deadline=None)
@given(st.tuples(ODD_PLACES, ODD_VALUES), st.booleans())
def test_whatever_stands_in_a_file_it_becomes_a_model_or_is_told(change: tuple[str, Any], skip_refused: bool) -> None:
    made = _convert(dict([change]), Choices("old.yaml", skip_refused=skip_refused))

    assert bool(made.text) != bool(made.findings)
