"""Other versions of stage.proto, made from its descriptor: an older one lacks fields, a newer one has more."""

from collections.abc import Callable, Iterator
from functools import cache

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import Message

from omni_contract.wire import stage_pb2

NEW_FIELD = 900
NEW_ENUM_VALUE = 99


def message_names() -> list[str]:
    return list(stage_pb2.DESCRIPTOR.message_types_by_name)


@cache
def older_schema() -> dict[str, type[Message]]:
    """Before the newest field of each message was added."""
    return _compiled(_without_newest_field)


@cache
def newer_schema() -> dict[str, type[Message]]:
    """Each message has a new field, each oneof a new case, each enum a new value."""
    return _compiled(_with_new_fields)


def _compiled(change: Callable[[DescriptorProto], None]) -> dict[str, type[Message]]:
    file = FileDescriptorProto()
    stage_pb2.DESCRIPTOR.CopyToProto(file)
    del file.service[:]
    for message in file.message_type:
        change(message)
    for enum in file.enum_type:
        enum.value.add(name=f"{enum.name}_NEW", number=NEW_ENUM_VALUE)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = (pool.FindMessageTypeByName(f"{file.package}.{message.name}") for message in file.message_type)
    return {descriptor.name: message_factory.GetMessageClass(descriptor) for descriptor in found}


def _without_newest_field(message: DescriptorProto) -> None:
    if len(message.field) > 1:
        newest = max(message.field, key=lambda field: field.number)
        alone_in_its_oneof = sum(_same_oneof(field, newest) for field in message.field) == 1
        if not (newest.HasField("oneof_index") and alone_in_its_oneof):
            message.field.remove(newest)


def _with_new_fields(message: DescriptorProto) -> None:
    for number, oneof in _new_fields(message):
        field = message.field.add(
            name=f"new_{number}",
            number=number,
            type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
            label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
        )
        if oneof is not None:
            field.oneof_index = oneof


def _new_fields(message: DescriptorProto) -> Iterator[tuple[int, int | None]]:
    yield NEW_FIELD, None
    for index in range(len(message.oneof_decl)):
        yield NEW_FIELD + 1 + index, index


def _same_oneof(one: FieldDescriptorProto, other: FieldDescriptorProto) -> bool:
    return one.HasField("oneof_index") and other.HasField("oneof_index") and one.oneof_index == other.oneof_index
