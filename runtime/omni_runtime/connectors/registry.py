"""The connectors that exist, by kind. A new one is a file in this folder and a line here."""

from omni_runtime.connectors.protocol import ConnectorFactory
from omni_runtime.plugins import Plugin, Registry

CONNECTORS: Registry[ConnectorFactory] = Registry("connector")
CONNECTORS.register("auto", Plugin("omni_runtime.connectors.auto", "AutoConnector"))
CONNECTORS.register("inline", Plugin("omni_runtime.connectors.inline", "InlineConnector"))
CONNECTORS.register("shm", Plugin("omni_runtime.connectors.shm.connector", "ShmConnector", extra="runtime"))
CONNECTORS.register("grpc", Plugin("omni_runtime.connectors.grpc", "GrpcConnector", extra="runtime"))
CONNECTORS.register("mooncakeStore", Plugin("omni_runtime.connectors.mooncake.store", "MooncakeStore"))
CONNECTORS.register(
    "mooncakeTransferEngine", Plugin("omni_runtime.connectors.mooncake.transfer_engine", "MooncakeTransferEngine")
)
CONNECTORS.register("yuanrong", Plugin("omni_runtime.connectors.yuanrong", "Yuanrong"))
