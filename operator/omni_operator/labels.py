"""The labels and annotations of a model's objects. This is the only place in the operator that spells one."""

from omni_contract.wire import names

MANAGER = "omni-operator"

REFRESH = f"{names.GROUP}/refresh"
"""On a model: any new value makes the operator render everything anew, with its own version and default images."""

APPLIED = f"{names.GROUP}/applied"
"""On a child: hash of what we last asked for, so that a field that we no longer ask for is noticed and removed."""

OF_ANY_MODEL = names.LABEL_MODEL
"""Label selector of everything that belongs to some model."""


def selector(model: str, component: str) -> dict[str, str]:
    """What Deployments and Services select by. Frozen: the API server refuses to change it."""
    return {names.LABEL_MODEL: model, names.LABEL_COMPONENT: component}


def of_component(model: str, component: str) -> dict[str, str]:
    return {**selector(model, component), names.LABEL_MANAGED_BY: MANAGER}


def of_model(model: str) -> dict[str, str]:
    """Labels of an object that belongs to the whole model."""
    return {names.LABEL_MODEL: model, names.LABEL_MANAGED_BY: MANAGER}


def with_revision(labels: dict[str, str], revision: str) -> dict[str, str]:
    return {**labels, names.LABEL_REVISION: revision}
