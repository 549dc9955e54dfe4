"""Rules about connectors and the edges that choose them."""

from pydantic.alias_generators import to_snake

from omni_contract.api.nearest import did_you_mean
from omni_contract.api.rules.rule import FieldRule, ItemRule, Rule
from omni_contract.api.v1alpha1 import (
    BUILT_IN_CONNECTORS,
    CONNECTOR_FIELDS,
    PLAIN_CONNECTORS,
    ConnectorSpec,
    EdgeSpec,
    OmniModelSpec,
)

CONNECTOR = ("spec", "connectors", "[]")
STORE = (*CONNECTOR, "mooncakeStore")
BLOCKS = ", ".join(f"{field}: {{}}" for field in CONNECTOR_FIELDS)
BLOCKS_SET = f"[{', '.join(f'has(self.{field})' for field in CONNECTOR_FIELDS)}].filter(isSet, isSet).size()"
NAMED_LIKE_ITSELF = " && ".join(f"(self.name != '{field}' || has(self.{field}))" for field in CONNECTOR_FIELDS)


def _blocks_set(connector: ConnectorSpec) -> list[str]:
    return [field for field in CONNECTOR_FIELDS if getattr(connector, to_snake(field)) is not None]


def _name_is_free(connector: ConnectorSpec) -> bool:
    """Two connectors must not answer to one name; only an entry of its own kind may stand for a built-in one."""
    taken = {*PLAIN_CONNECTORS, *(field for field in CONNECTOR_FIELDS if field not in _blocks_set(connector))}
    return connector.name not in taken


def _connector_exists(spec: OmniModelSpec, edge: EdgeSpec) -> bool:
    return edge.connector in _names(spec)


def _did_you_mean(spec: OmniModelSpec, edge: EdgeSpec) -> str:
    return did_you_mean(edge.connector, _names(spec))


def _names(spec: OmniModelSpec) -> list[str]:
    return [*BUILT_IN_CONNECTORS, *(connector.name for connector in spec.connectors)]


CONNECTOR_RULES: tuple[Rule, ...] = (
    FieldRule(
        at=CONNECTOR,
        cel=f"{BLOCKS_SET} == 1",
        holds=lambda connector: len(_blocks_set(connector)) == 1,
        message=f'connector "{{self.name}}" needs exactly one block that says its kind; the blocks are: {BLOCKS}',
    ),
    FieldRule(
        at=CONNECTOR,
        pointer="name",
        cel=f"!(self.name in [{', '.join(map(repr, PLAIN_CONNECTORS))}]) && {NAMED_LIKE_ITSELF}",
        holds=_name_is_free,
        message='a connector of another kind is called "{self.name}" already; choose another name',
    ),
    FieldRule(
        at=STORE,
        cel="has(self.master) != (has(self.managed) && self.managed)",
        holds=lambda store: (store.master is not None) != store.managed,
        message="the store needs one master: set managed: true to have one started, or master to HOST:PORT of one that "
        "runs already",
    ),
    ItemRule(
        at=("spec",),
        items="edges",
        cel=f"!has(item.connector) || item.connector in [{', '.join(map(repr, BUILT_IN_CONNECTORS))}] "
        "|| self.connectors.exists(connector, connector.name == item.connector)",
        holds=_connector_exists,
        message='edge "{item.from}->{item.to}" chooses connector "{item.connector}", which does not exist; use one of '
        f"{', '.join(BUILT_IN_CONNECTORS)} or add it to connectors",
        hint=_did_you_mean,
    ),
)
