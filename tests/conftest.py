"""What holds for every test: a deterministic environment, the shared fixtures, and known ids on `case` marks."""

import gc
import os
from importlib.util import find_spec

import pytest
from hypothesis import settings

DETERMINISTIC = {
    "HF_HUB_OFFLINE": "1",
    "NO_PROXY": "127.0.0.1,localhost",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_OFFLINE": "1",
    "no_proxy": "127.0.0.1,localhost",
}
"""Set before anything imports torch; child processes inherit it."""

os.environ.update(DETERMINISTIC)

# What tests and libraries import stays: to look through it for garbage again and again costs a tenth of all.
gc.set_threshold(50_000)

settings.register_profile("long", max_examples=2000)
"""For `make test-model-long`."""

SHARED_FIXTURES = ("tests.cluster.fixtures", "tests.support.fixtures")

pytest_plugins = [module for module in SHARED_FIXTURES if find_spec(module) is not None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A misspelt case id would count as an uncovered case; refuse it where it stands."""
    from tests.cases.ids import known_case_ids

    known = set(known_case_ids())
    unknown = sorted({f"{item.nodeid}: {case}" for item in items for case in case_ids(item) if case not in known})
    if unknown:
        raise pytest.UsageError("unknown case ids, see tests/cases/case-ids.txt:\n" + "\n".join(unknown))


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def case_ids(item: pytest.Item) -> list[str]:
    return [case for mark in item.iter_markers("case") for case in mark.args]
