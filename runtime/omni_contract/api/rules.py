"""Rules between the fields of a model file."""

from omni_contract.api.problems import Problem
from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.presets import PRESETS


def rule_problems(spec: OmniModelSpec) -> list[Problem]:
    """Every rule that the spec breaks."""
    problems = []
    if not spec.model.source.startswith("pvc://"):
        problems.append(Problem(("spec", "model", "source"), "use pvc://CLAIM/PATH"))
    if spec.family and spec.family not in PRESETS:
        problems.append(Problem(("spec", "family"), f'there is no family "{spec.family}"'))
    return problems
