"""The tables of docs/metrics.md, and what a process exposes in the same form."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.layout.source import CHECKOUT

ROW = re.compile(r"^\| `(omni_\w+)` \| (\w+) \| ([^|]*)\|", re.MULTILINE)
PREFIX = "omni_"
OF_THE_FORM = frozenset({"le", "quantile"})
"""Labels that come from the kind of metric."""


@dataclass(frozen=True)
class Series:
    """A counter's name ends in "_total". `labels` is None if there is no sample that would show them."""

    kind: str
    labels: frozenset[str] | None


def documented(part: str) -> dict[str, Series]:
    """The series of "frontend", "worker" or "operator"."""
    page = (CHECKOUT / "docs" / "metrics.md").read_text()
    rows = {name: Series(kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in ROW.findall(page)}
    return {name: series for name, series in rows.items() if name.startswith(f"{PREFIX}{part}_")}


def exposed(families: Iterable[Metric]) -> dict[str, Series]:
    """Ours alone, without the times at which they were created."""
    ours = [one for one in families if one.name.startswith(PREFIX) and not one.name.endswith("_created")]
    return {_name(one): Series(one.type, _labels(one)) for one in ours}


def scraped(text: str) -> dict[str, Series]:
    return exposed(text_string_to_metric_families(text))


def _name(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else family.name


def _labels(family: Metric) -> frozenset[str] | None:
    samples = family.samples
    return (
        frozenset(label for sample in samples for label in sample.labels if label not in OF_THE_FORM)
        if samples
        else None
    )
