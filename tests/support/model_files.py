"""Model files, specs and accelerator catalogs to test with: a sound one, and what a test wants changed."""

import copy
import re
from collections.abc import Mapping
from typing import Any

from omni_contract.accelerators import AcceleratorCatalog, Pool, Toleration, Vendor, VendorProfile
from omni_contract.api.v1alpha1 import OmniModelSpec

STEP = re.compile(r"([A-Za-z]+)|\[(\d+)\]")
REMOVED = object()
"""As a value: take the key out."""


def model_file(changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A sound split Qwen-Image model, with changes by path, for example {"spec.stages[0].replicas": 2}."""
    document = {
        "apiVersion": "serving.omnimodel.dev/v1alpha1",
        "kind": "OmniModel",
        "metadata": {"name": "painter"},
        "spec": {
            "model": {"source": "pvc://models/qwen-image"},
            "family": "qwen-image",
            "stages": [{"name": name} for name in ("text-encoder", "denoiser", "vae-decoder")],
        },
    }
    return changed(document, changes or {})


def fake_file(changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A sound model without a family: two fake stages and the edge between them."""
    document = model_file()
    document["spec"] = {
        "model": {"source": "pvc://models/none"},
        "stages": [{"name": "first", "fake": {}}, {"name": "last", "fake": {}, "output": {"modality": "text"}}],
        "edges": [{"from": "first", "to": "last"}],
    }
    return changed(document, changes or {})


def spec(changes: Mapping[str, Any] | None = None) -> OmniModelSpec:
    """The spec of `model_file`; paths start below spec."""
    return OmniModelSpec.model_validate(changed(model_file()["spec"], changes or {}))


def fake_spec(changes: Mapping[str, Any] | None = None) -> OmniModelSpec:
    return OmniModelSpec.model_validate(changed(fake_file()["spec"], changes or {}))


def changed(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with the value at each path replaced, added or, for REMOVED, taken out."""
    result: dict[str, Any] = copy.deepcopy(dict(document))
    for path, value in changes.items():
        *parents, last = [int(index) if index else name for name, index in STEP.findall(path)]
        node: Any = result
        for step in parents:
            node = node[step] if isinstance(step, int) else node.setdefault(step, {})
        if value is REMOVED:
            del node[last]
        elif isinstance(last, int) and last == len(node):
            node.append(value)
        else:
            node[last] = value
    return result


def catalog(**changes: Any) -> AcceleratorCatalog:
    """A cluster with a pool of each vendor; no runtime image for Intel's."""
    fields: dict[str, Any] = {
        "profiles": {
            "nvidia": VendorProfile(vendor=Vendor.NVIDIA, image="runtime-cuda:1", resource="nvidia.com/gpu"),
            "rocm": VendorProfile(vendor=Vendor.ROCM, image="runtime-rocm:1", resource="amd.com/gpu"),
            "ascend": VendorProfile(vendor=Vendor.ASCEND, image="runtime-ascend:1", resource="huawei.com/Ascend910"),
            "xpu": VendorProfile(vendor=Vendor.XPU, resource="gpu.intel.com/i915"),
            "cpu": VendorProfile(vendor=Vendor.CPU, image="runtime-cpu:1"),
        },
        "pools": {
            "h100": Pool(
                profile="nvidia",
                node_selector={"accelerator": "h100"},
                tolerations=(Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule"),),
            ),
            "mi300": Pool(profile="rocm", node_selector={"accelerator": "mi300"}),
            "ascend910": Pool(profile="ascend", node_selector={"accelerator": "ascend910"}),
            "arc": Pool(profile="xpu"),
            "cpu": Pool(profile="cpu"),
        },
    }
    return AcceleratorCatalog(**(fields | changes))
