"""A sample of every message of stage.proto with every field set, one for each case of its oneof."""

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from omni_contract.wire import stage_pb2

SCALARS: dict[int, Any] = {
    FieldDescriptor.TYPE_BOOL: True,
    FieldDescriptor.TYPE_DOUBLE: 0.5,
    FieldDescriptor.TYPE_UINT32: 7,
    FieldDescriptor.TYPE_UINT64: 2**40,
    FieldDescriptor.TYPE_BYTES: b"\x00\xff",
    FieldDescriptor.TYPE_ENUM: 1,
}


def samples() -> Iterator[tuple[str, Message]]:
    """Pairs of a name, for example "Input.handle", and its message."""
    for descriptor in stage_pb2.DESCRIPTOR.message_types_by_name.values():
        cases = [field for oneof in descriptor.oneofs for field in oneof.fields]
        for case in cases or [None]:
            name = f"{descriptor.name}.{case.name}" if case else descriptor.name
            yield name, sample(descriptor, case)


def sample(descriptor: Descriptor, case: FieldDescriptor | None = None) -> Message:
    message = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if field.containing_oneof is None or field is (case or field.containing_oneof.fields[0]):
            _fill(message, field)
    return message


def _fill(message: Message, field: FieldDescriptor) -> None:
    if field.message_type is None:
        value = SCALARS.get(field.type, f"{field.name}-1")
        setattr(message, field.name, value) if not field.is_repeated else getattr(message, field.name).append(value)
    elif field.is_repeated:
        getattr(message, field.name).append(sample(field.message_type))
    else:
        getattr(message, field.name).CopyFrom(sample(field.message_type))
