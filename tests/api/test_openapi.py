"""Our OpenAPI document against our own answers."""

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from omni_runtime.frontend.app import create_app
from omni_runtime.frontend.settings import FrontendSettings
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from tests.support.stage_tables import image_table

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


def openapi_document() -> dict[str, Any]:
    table = image_table()
    frontend = FrontendSettings(Path("unused"), "127.0.0.1", 0, "local", "f")
    orchestrator = Orchestrator(table, LocalDiscovery(table), OrchestratorSettings("f"))
    return create_app(frontend, orchestrator).openapi()


DOCUMENT = openapi_document()
OPERATIONS = [found.ok() for found in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations()]


@pytest.mark.parametrize("model", ["url", "talking_url", "reading_url"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: str(operation.label))
def test_answers_are_as_documented(operation: Any, model: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(model)

    @given(case=operation.as_strategy())
    @settings(
        max_examples=30,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: schemathesis.Case) -> None:
        case.call_and_validate(base_url=url, checks=CHECKS)

    check()


def test_every_route_documents_the_envelope_for_its_errors_and_never_422() -> None:
    for path, operations in DOCUMENT["paths"].items():
        for operation in operations.values():
            assert "422" not in operation["responses"]
            assert "default" in operation["responses"] or not path.startswith("/v1/")
