"""The CustomResourceDefinition of OmniModel."""

from typing import Any

from omni_contract.api.rules import RULES
from omni_contract.api.schema import Schema, structural, with_rules
from omni_contract.api.v1alpha1.resource import OmniModel
from omni_contract.wire.names import GROUP, KIND, PLURAL, VERSION

COLUMNS: tuple[dict[str, Any], ...] = (
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Stages", "type": "string", "jsonPath": ".status.stagesReady"},
    {"name": "Revision", "type": "string", "jsonPath": ".status.revision", "priority": 1},
    {"name": "URL", "type": "string", "jsonPath": ".status.endpoints.url"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)


def crd() -> dict[str, Any]:
    """The manifest."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["om"],
                "categories": ["all"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": list(COLUMNS),
                    "schema": {"openAPIV3Schema": schema()},
                }
            ],
        },
    }


def schema() -> Schema:
    """The resource's schema with its rules; kind, version and metadata are the API server's own business."""
    resource = structural(OmniModel)
    for name in ("apiVersion", "kind"):
        resource["properties"][name] = {"type": "string"}
    resource["properties"]["metadata"] = {"type": "object", "properties": {"name": {"type": "string"}}}
    resource["properties"]["status"].pop("default", None)
    resource["required"] = ["spec"]
    return with_rules(resource, RULES)
