"""Which ports the stages' transfers listen on: ranges that never meet, so that stages may share a host's network.

Inside its range a worker takes whatever ports are free and tells them in its handles; nobody computes them.
"""

from omni_contract.api.v1alpha1 import ConnectorSpec
from omni_contract.api.v1alpha1.mooncake import PORTS_PER_STAGE, MooncakeTransport


def first_port(base: int, stage_index: int) -> int:
    return base + stage_index * PORTS_PER_STAGE


def with_ports_of(connector: ConnectorSpec, stage_index: int) -> ConnectorSpec:
    """The connector as the stage at this place of the graph uses it."""
    block = connector.block
    if not isinstance(block, MooncakeTransport) or block.first_port is None:
        return connector
    moved = block.model_copy(update={"first_port": first_port(block.first_port, stage_index)})
    return connector.with_block(moved)
