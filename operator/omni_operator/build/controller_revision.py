"""The ControllerRevision that keeps what a model's children were rendered to."""

from omni_operator import labels
from omni_operator.objects import CONTROLLER_REVISION, Manifest
from omni_operator.plan import names
from omni_operator.plan.record import Record, dump_record, latest_revision


def controller_revision(model: str, record: Record, children: list[Manifest]) -> Manifest:
    """Named by its content; its number is the newest one's if the content is, else the next."""
    data = dump_record(record)
    name = names.revision_name(model, names.canonical(data))  # type: ignore[arg-type]
    newest = latest_revision(children)
    number = 1 if newest is None else int(newest["revision"]) + (newest["metadata"]["name"] != name)
    return {
        "apiVersion": CONTROLLER_REVISION.api_version,
        "kind": CONTROLLER_REVISION.name,
        "metadata": {"name": name, "labels": labels.of_model(model)},
        "data": data,
        "revision": number,
    }
