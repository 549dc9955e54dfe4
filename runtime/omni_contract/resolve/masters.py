"""Masters of managed stores: which connectors want one, whose image it runs, how the stages are told where it is."""

from collections.abc import Mapping
from dataclasses import replace

from omni_contract.api.v1alpha1 import ConnectorSpec
from omni_contract.resolve.resolved import ResolvedDevice, ResolvedModel


def managed_stores(model: ResolvedModel) -> tuple[str, ...]:
    """Connectors in use whose master is started with the model."""
    return tuple(connector.name for connector in model.connectors if _is_managed(connector))


def with_masters_at(model: ResolvedModel, addresses: Mapping[str, str]) -> ResolvedModel:
    """The model as its stages are told it: a managed store is one with a master at HOST:PORT."""
    connectors = (_told(connector, addresses.get(connector.name)) for connector in model.connectors)
    return replace(model, connectors=tuple(connectors))


def device_of_master(model: ResolvedModel, connector: str) -> ResolvedDevice:
    """Of a stage that uses the store, so that master and members are of one version; best of one on the CPU."""
    users = {end for edge in model.edges if edge.connector == connector for end in (edge.source, edge.target)}
    devices = [stage.device for stage in model.stages if stage.name in users]
    return min(devices, key=lambda device: device.vendor.has_devices)


def _is_managed(connector: ConnectorSpec) -> bool:
    return connector.mooncake_store is not None and connector.mooncake_store.managed


def _told(connector: ConnectorSpec, address: str | None) -> ConnectorSpec:
    if address is None or connector.mooncake_store is None:
        return connector
    return connector.with_block(connector.mooncake_store.model_copy(update={"managed": False, "master": address}))
