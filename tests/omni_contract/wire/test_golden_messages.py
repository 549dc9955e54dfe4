"""The bytes of every message stay what they are; readers of another version survive them."""

import pytest
from google.protobuf import text_format
from google.protobuf.message import Message

from omni_contract.wire import stage_pb2
from tests.omni_contract.wire.golden_files import FOLDER, golden_of, read_golden
from tests.omni_contract.wire.samples import samples
from tests.omni_contract.wire.schemas import (
    NEW_ENUM_VALUE,
    NEW_FIELD,
    message_names,
    newer_schema,
    older_schema,
)

SAMPLES = dict(samples())


def test_every_message_has_a_golden_file_and_every_golden_file_a_message():
    assert {path.stem for path in FOLDER.glob("*.txtpb")} == set(SAMPLES)
    assert {name.partition(".")[0] for name in SAMPLES} == set(message_names())


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_message_is_written_and_read_as_its_golden_file_says(name: str):
    golden, sample = read_golden(name), SAMPLES[name]
    assert golden_of(sample) == golden
    assert type(sample).FromString(golden.data) == text_format.Parse(golden.text, type(sample)())


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_an_older_reader_survives_a_newer_message_and_passes_it_on_whole(name: str):
    golden = read_golden(name)
    reader = older_schema()[name.partition(".")[0]]
    seen = reader.FromString(golden.data)
    for field, value in seen.ListFields():
        assert field.message_type is not None or value == getattr(SAMPLES[name], field.name)
    assert type(SAMPLES[name]).FromString(seen.SerializeToString()) == SAMPLES[name]


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_todays_reader_survives_a_message_with_a_field_of_tomorrow(name: str):
    message_name = name.partition(".")[0]
    tomorrow = newer_schema()[message_name].FromString(read_golden(name).data)
    setattr(tomorrow, f"new_{NEW_FIELD}", "later")
    assert_known_fields_equal(type(SAMPLES[name]).FromString(tomorrow.SerializeToString()), SAMPLES[name])


def assert_known_fields_equal(one: Message, other: Message) -> None:
    assert [field.name for field, _ in one.ListFields()] == [field.name for field, _ in other.ListFields()]
    for field, value in one.ListFields():
        assert value == getattr(other, field.name)


@pytest.mark.parametrize("name", ["FrontendMessage", "WorkerMessage", "Input", "Output"])
def test_todays_reader_sees_no_case_where_tomorrow_has_a_new_one(name: str):
    oneof = stage_pb2.DESCRIPTOR.message_types_by_name[name].oneofs[0].name
    tomorrow = newer_schema()[name]()
    setattr(tomorrow, f"new_{NEW_FIELD + 1}", "later")
    assert getattr(stage_pb2, name).FromString(tomorrow.SerializeToString()).WhichOneof(oneof) is None


def test_todays_reader_keeps_an_enum_value_of_tomorrow():
    tomorrow = newer_schema()["WorkerInfo"](stage="a", state=NEW_ENUM_VALUE)
    today = stage_pb2.WorkerInfo.FromString(tomorrow.SerializeToString())
    assert today.stage == "a"
    assert today.state not in stage_pb2.WorkerState.values()
    assert today.SerializeToString() == tomorrow.SerializeToString()
