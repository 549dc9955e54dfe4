"""The operator's metrics are what docs/metrics.md says."""

from prometheus_client import REGISTRY

import omni_operator.metrics  # noqa: F401 - registers them
from tests.support.metrics_page import documented, exposed


def test_the_operator_has_the_series_that_are_documented_and_no_others() -> None:
    found = {name: series.kind for name, series in exposed(REGISTRY.collect()).items()}
    assert found == {name: series.kind for name, series in documented("operator").items()}
