import ast

import pytest

from tests.layout.features import PAGE, STATES, Feature, page, read_features
from tests.layout.source import CHECKOUT

FEATURES = read_features()


def test_the_page_is_what_the_data_says() -> None:
    assert PAGE.read_text() == page(FEATURES), "run: python -m tests.layout.features"


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_what_works_here_names_a_test_that_exists(feature: Feature) -> None:
    assert feature.state in STATES
    assert bool(feature.proof) == (feature.state == "here")
    if feature.proof:
        file, _, test = feature.proof.partition("::")
        functions = ast.walk(ast.parse((CHECKOUT / file).read_text()))
        assert test in {node.name for node in functions if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
