"""The two files that we hand to processes: a stage's (immutable, named by its content) and the frontend's table."""

from omni_contract.wire.names import STAGE_TABLE_KEY
from omni_contract.wire.stage_file import StageFile
from omni_contract.wire.stage_table import StageTable
from omni_operator import labels
from omni_operator.objects import Manifest
from omni_operator.plan import names

STAGE_FILE_KEY = "stage.json"


def stage_file_map(file: StageFile) -> Manifest:
    """A pod of an older revision that restarts must never read a newer file, so a file never changes."""
    content = _text(file)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.stage_file_name(file.model, file.stage, content),
            "labels": labels.with_revision(labels.of_component(file.model, file.stage), file.revision),
        },
        "immutable": True,
        "data": {STAGE_FILE_KEY: content},
    }


def stage_table_map(table: StageTable) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.stage_table_name(table.model),
            "labels": labels.of_component(table.model, names.FRONTEND),
        },
        "data": {STAGE_TABLE_KEY: _text(table)},
    }


def _text(document: StageFile | StageTable) -> str:
    """Every value is spelled out: an engine is told by its keys, and what it runs with is there to be read."""
    return names.canonical(document.model_dump(mode="json", by_alias=True)) + "\n"
