"""Names of a model's objects: deterministic, at most 63 characters, never to be changed (golden tests hold them)."""

import hashlib
import json

from pydantic import JsonValue

from omni_contract.resolve import ResolvedGroup, ResolvedModel
from omni_contract.wire import names as wire

FRONTEND = wire.FRONTEND

CONTAINER = "main"
"""Of every pod; users lay their template's container of this name under it."""

NAME_LIMIT = 63
HASH_LENGTH = 10


def component_name(model: str, component: str) -> str:
    """The Deployment and Service of a stage or of the frontend; also the frontend's account and binding."""
    return shortened(f"{model}-{component}")


def master_component(connector: str) -> str:
    """The component that is a connector's master. Longer than any stage's name, so that none can have it."""
    return f"connector-{connector}-master"


def is_master(component: str) -> bool:
    return component.startswith("connector-") and component.endswith("-master")


def component_of(model: ResolvedModel, stage: str) -> str:
    """The component whose pods run a stage: its own, or that of the group that it shares pods with."""
    group = model.group_of(stage)
    return stage if group is None else group_component(group)


def group_component(group: ResolvedGroup) -> str:
    """Longer than any stage's name, too."""
    return f"colocation-with-{group.stages[0]}"


def stage_file_name(model: str, stage: str, content: str) -> str:
    return _hashed(f"{model}-{stage}", content)


def stage_table_name(model: str) -> str:
    return shortened(wire.stage_table_config_map(model))


def revision_name(model: str, content: str) -> str:
    return _hashed(model, content)


def digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:HASH_LENGTH]


def canonical(value: JsonValue) -> str:
    """The one spelling of a JSON value: hashes are made of it, so it must not depend on the order of keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def shortened(name: str, limit: int = NAME_LIMIT) -> str:
    """The name itself where it fits, else its beginning and a hash of all of it."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - HASH_LENGTH - 1].rstrip('-')}-{digest(name)}"


def _hashed(stem: str, content: str) -> str:
    return f"{shortened(stem, NAME_LIMIT - HASH_LENGTH - 1)}-{digest(content)}"
