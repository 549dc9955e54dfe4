"""The keys of an old stage file outside its stages: top level, `runtime`, edges and connectors."""

from collections.abc import Mapping

from omni_contract.api.v1alpha1.connector import ConnectorKind
from omni_contract.convert.keys import Key, Table, table

PORTS = "workers choose their ports and tell each other"
THRESHOLD = Key(
    "shm_threshold_bytes",
    "integer",
    "nothing: payloads of up to 64 KiB travel inside the message, larger ones through shared memory",
    only=(65_536,),
    refused="the threshold is 65536 and no setting",
)

FILE = table(
    Key("stage_args", "list", "spec.stages"),
    Key("async_chunk", "bool", "spec.edges[].streaming"),
    Key("runtime", "map", "what its keys become"),
    Key("connectors", "list", "spec.connectors and spec.edges[].connector"),
)

RUNTIME = table(
    Key(
        "enabled",
        "bool",
        "nothing: stages always run apart from each other",
        only=(True,),
        refused="stages always run apart from each other",
    ),
    Key("defaults", "map", "what its keys become"),
    Key("edges", "list", "spec.edges"),
    Key("connectors", "map", "spec.connectors"),
    THRESHOLD,
)

WINDOW = Key(
    "window_size",
    "integer",
    "spec.edges[].streaming.enabled: false; nothing if async_chunk is on",
    only=(-1,),
    refused="no window but -1, the whole payload, is defined",
    instead="remove it, and set async_chunk, which becomes streaming edges",
)

DEFAULTS = table(WINDOW, Key("max_inflight", "integer", "spec.stages[].maxInFlight, where a stage has none of its own"))

EDGE = table(Key("from", "id", "spec.edges[].from"), Key("to", "id", "spec.edges[].to"), WINDOW)

CONNECTOR = table(Key("name", "text", "the block of spec.connectors[]"), Key("extra", "map", "what its keys become"))

LINK = table(
    Key("from_stage", "id", "spec.edges[].from"),
    Key("to_stage", "id", "spec.edges[].to"),
    Key("spec", "map", "spec.connectors[]"),
)

CONNECTOR_KINDS: Mapping[str, ConnectorKind] = {
    "SharedMemoryConnector": "shm",
    "MooncakeConnector": "mooncakeStore",
    "MooncakeStoreConnector": "mooncakeStore",
    "MooncakeTransferEngineConnector": "mooncakeTransferEngine",
    "YuanrongConnector": "yuanrong",
}
"""By the class that the old file names."""

STAGE_ID = Key("stage_id", "id", "nothing: an edge knows its stages")
HOST = Key(
    "host", "text", "host; nothing if it is auto or the loopback address, since pods have addresses of their own"
)
OLD_LAUNCHER = "the old launcher put it there itself"

EXTRAS: Mapping[ConnectorKind, Table] = {
    "shm": table(THRESHOLD, STAGE_ID),
    "mooncakeStore": table(
        HOST,
        Key("metadata_server", "text", "metadataServer"),
        Key("master", "text", "master; without it, managed: true has one started with the model"),
        Key("segment", "integer", "segmentSize"),
        Key("localbuf", "integer", "bufferSize"),
        Key("proto", "text", "protocol"),
        Key("rdma", "text", "deviceName"),
        STAGE_ID,
    ),
    "mooncakeTransferEngine": table(
        HOST,
        Key("protocol", "text", "protocol"),
        Key("memory_pool_size", "integer", "poolSize"),
        Key("memory_pool_device", "text", "poolDevice"),
        Key("device_name", "text", "deviceName"),
        Key("role", "text", "nothing: an edge says who sends and who receives"),
        Key("zmq_port", "integer", refused=PORTS),
        Key("sender_host", "text", refused=OLD_LAUNCHER),
        Key("sender_zmq_port", "integer", refused=OLD_LAUNCHER),
        STAGE_ID,
    ),
    "yuanrong": table(
        Key("host", "text", "host"),
        Key("port", "integer", "port"),
        Key("get_sub_timeout_ms", "integer", "getTimeoutSeconds"),
        STAGE_ID,
    ),
}
"""Keys of `extra`, by the connector's block; `becomes` counts from the block."""
