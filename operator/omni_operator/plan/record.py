"""What a model's children were rendered to, kept in a ControllerRevision so that a newer operator restarts no pod.

A *unit* is what restarts together: one stage, or the frontend. Each unit remembers the user's words it was made from,
and is rendered again only when those change.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field, JsonValue, ValidationError

from omni_contract.accelerators import ConfigModel
from omni_operator.objects import CONTROLLER_REVISION, Manifest, kind_of

logger = logging.getLogger(__name__)


class Unit(ConfigModel):
    """One stage or the frontend, rendered: without owner and replicas, which are added when it is applied."""

    inputs: str = Field(description="Hash of what the user says about it.")
    revision: str
    manifests: tuple[dict[str, JsonValue], ...]


class Record(ConfigModel):
    format: Literal[1] = 1
    refresh: str | None = Field(None, description="The value of the annotation that last asked for a new rendering.")
    contracts: dict[str, str] = Field(description="What the two ends of each edge agreed on, as rendered.")
    units: dict[str, Unit]


def latest_revision(children: Iterable[Manifest]) -> Manifest | None:
    """The newest ControllerRevision among a model's children."""
    revisions = [child for child in children if kind_of(child) is CONTROLLER_REVISION]
    return max(revisions, key=lambda revision: int(revision["revision"]), default=None)


def read_record(revision: Manifest | None) -> Record | None:
    """What a ControllerRevision holds; None if there is none or a later operator wrote it in another form."""
    if revision is None:
        return None
    try:
        return Record.model_validate(revision["data"])
    except ValidationError as problem:
        logger.warning("%s is not readable, so everything is rendered anew: %s", revision["metadata"]["name"], problem)
        return None


def dump_record(record: Record) -> Mapping[str, JsonValue]:
    dumped: dict[str, JsonValue] = record.model_dump(mode="json", by_alias=True)
    return dumped
