"""What holds of the children of every sound model."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_operator.plan.diff import differs
from omni_operator.plan.names import NAME_LIMIT
from tests.support.operator_models import POOLS, a_model, a_record, a_spec, a_stage, children_of

FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.sampled_from([0, 1, 1000]),
        "resources": st.fixed_dictionaries(
            {}, optional={"cpu": st.sampled_from([1, "500m"]), "memory": st.just("1.5Gi")}
        ),
        "shm": st.fixed_dictionaries({"size": st.sampled_from(["64Mi", "1G"])}),
        "drain": st.fixed_dictionaries({"timeoutSeconds": st.integers(1, 86_400)}),
        "startupTimeoutSeconds": st.sampled_from([1, 601, 86_400]),
        "maxInFlight": st.sampled_from([1, 4096]),
        "sampling": st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
        "template": st.sampled_from([{"spec": {"priorityClassName": "x"}}, {"metadata": {"labels": {"a": "b"}}}]),
    },
)
NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,13}[a-z0-9])?", fullmatch=True).filter(lambda name: name != "frontend")


@st.composite
def sound_specs(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    stages = [a_stage(name, draw(st.sampled_from(POOLS)), **draw(FIELDS)) for name in names]
    return a_spec(*stages, suspend=draw(st.booleans()))


@pytest.mark.case("operator:A28")
@pytest.mark.case("operator:A29")
@pytest.mark.case("operator:H06")
@settings(max_examples=20, deadline=None)
@given(sound_specs())
def test_children_have_good_names_and_do_not_differ_from_themselves(spec: dict[str, Any]) -> None:
    model = a_model(spec, name="m" * 30)
    children = children_of(model)
    assert all(len(child["metadata"]["name"]) <= NAME_LIMIT for child in children)
    assert len({(child["kind"], child["metadata"]["name"]) for child in children}) == len(children)
    assert not any(differs(child, child) for child in children)
    assert a_record(model, before=a_record(model)) == a_record(model)
