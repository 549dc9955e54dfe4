"""The connectors that exist, by kind. A new one is a file in this folder and a line here."""

from omni_runtime.connectors.protocol import ConnectorFactory
from omni_runtime.plugins import Plugin, Registry

CONNECTORS: Registry[ConnectorFactory] = Registry("connector")
CONNECTORS.register("auto", Plugin("omni_runtime.connectors.auto", "AutoConnector"))
CONNECTORS.register("inline", Plugin("omni_runtime.connectors.inline", "InlineConnector"))
CONNECTORS.register("grpc", Plugin("omni_runtime.connectors.grpc", "GrpcConnector", extra="runtime"))
