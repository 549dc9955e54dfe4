"""Old edges and connectors as entries of spec.edges and spec.connectors."""

from collections.abc import Iterable

from pydantic import JsonValue

from omni_contract.convert.addresses import is_own
from omni_contract.convert.devices import Placement
from omni_contract.convert.file_keys import EXTRAS
from omni_contract.convert.old_edges import OldConnector, OldEdge

CODEC_FRAMES = 25
"""Frames of codes in a chunk for a codec, the only number that async_chunk knows."""
LONGEST_NAME = 30


def edge_fields(edge: OldEdge, where: Placement, async_chunk: bool | None) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {"from": edge.source.name, "to": edge.target.name}
    if edge.connector and edge.connector.kind != "shm":
        fields["connector"] = connector_name(edge.connector)
    elif edge.connector and where.share_pod(edge.source, edge.target):
        fields["connector"] = "shm"
    if async_chunk:
        frames = CODEC_FRAMES if edge.target.kind == "generation" else 1
        fields["streaming"] = {"enabled": True, "chunkFrames": frames}
    elif async_chunk is False or edge.says_whole:
        fields["streaming"] = {"enabled": False}
    return fields


def connector_fields(connectors: Iterable[OldConnector]) -> list[JsonValue]:
    """Those that have settings here. Shared memory needs none: it is built in."""
    distinct = {connector_name(connector): connector for connector in connectors if connector.kind != "shm"}
    return [{"name": name, connector.kind: _settings(connector)} for name, connector in distinct.items()]


def connector_name(connector: OldConnector) -> str:
    """As the file calls it, in the form of our names."""
    name = connector.name.lower().replace("_", "-").replace(".", "-")[:LONGEST_NAME].strip("-")
    return name if name[:1].isalpha() else f"connector-{name}"[:LONGEST_NAME]


def _settings(connector: OldConnector) -> dict[str, JsonValue]:
    table, found = EXTRAS[connector.kind], dict[str, JsonValue]()
    if connector.kind == "mooncakeStore" and "master" not in connector.extra:
        found["managed"] = True
    for key in (key for key in table if key in connector.extra):
        field, value = table[key].becomes.partition(";")[0], connector.extra[key]
        if field.startswith("nothing") or (key == "host" and is_own(value) and connector.kind != "yuanrong"):
            continue
        if key == "get_sub_timeout_ms" and isinstance(value, int):
            value = value / 1000
        found[field] = str(value) if field.endswith("Size") else value
    return found
