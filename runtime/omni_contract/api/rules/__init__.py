"""Rules between the fields of a model file. The CRD carries their CEL, `rule_problems` applies their Python."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic.alias_generators import to_snake

from omni_contract.api.problems import Path, Problem
from omni_contract.api.rules.of_autoscaling import AUTOSCALING_RULES
from omni_contract.api.rules.of_connectors import CONNECTOR_RULES
from omni_contract.api.rules.of_edges import EDGE_RULES
from omni_contract.api.rules.of_frontend import FRONTEND_RULES
from omni_contract.api.rules.of_model import MODEL_RULES, RESOURCE_RULES
from omni_contract.api.rules.of_placement import PLACEMENT_RULES
from omni_contract.api.rules.of_stages import STAGE_RULES
from omni_contract.api.rules.rule import Rule
from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.api.v1alpha1.resource import OmniModel

SPEC_RULES: tuple[Rule, ...] = (
    *MODEL_RULES,
    *STAGE_RULES,
    *EDGE_RULES,
    *CONNECTOR_RULES,
    *FRONTEND_RULES,
    *PLACEMENT_RULES,
    *AUTOSCALING_RULES,
)
RULES: tuple[Rule, ...] = (*RESOURCE_RULES, *SPEC_RULES)


def rule_problems(spec: OmniModelSpec) -> list[Problem]:
    """Every rule that the spec breaks."""
    return [
        problem
        for rule in SPEC_RULES
        for node, path in _nodes(spec, rule.at[1:], ("spec",))
        for problem in rule.problems(node, path)
    ]


def resource_problems(model: OmniModel) -> list[Problem]:
    """Every rule that the resource breaks, its name included."""
    return [problem for rule in RESOURCE_RULES for problem in rule.problems(model, ())] + rule_problems(model.spec)


def _nodes(node: Any, at: Sequence[str], path: Path) -> Iterator[tuple[Any, Path]]:
    """The objects that stand at a schema path, with their own paths; none where a field is left out."""
    if not at:
        yield node, path
        return
    step, rest = at[0], at[1:]
    if step == "[]":
        for index, item in enumerate(node):
            yield from _nodes(item, rest, (*path, index))
    elif (child := getattr(node, to_snake(step))) is not None:
        yield from _nodes(child, rest, (*path, step))


__all__ = ["RULES", "SPEC_RULES", "Rule", "resource_problems", "rule_problems"]
