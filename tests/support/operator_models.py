"""Builders of what the operator works on: models as the API server stores them, the four vendors' pools, settings."""

import copy
import itertools
from collections.abc import Mapping
from typing import Any

from omni_contract.accelerators import AcceleratorCatalog
from omni_contract.resolve import ResolvedModel, resolve
from omni_contract.wire import names as wire
from omni_operator.build.children import desired_children
from omni_operator.build.unit import render
from omni_operator.objects import Manifest, ModelKey
from omni_operator.plan.inputs import Inputs, inputs_of
from omni_operator.plan.observe import Owner
from omni_operator.plan.record import Record
from omni_operator.reconcile import spec_of
from omni_operator.settings import FrontendSettings, Settings

NAMESPACE = "team"
CREATED = "2026-11-30T12:00:00Z"

CATALOG: dict[str, Any] = {
    "allowFakeEngine": True,
    "profiles": {
        "cpu": {"vendor": "cpu", "image": "runtime-cpu:1"},
        "nvidia": {
            "vendor": "nvidia",
            "image": "runtime-cuda:1",
            "resource": "nvidia.com/gpu",
            "visibleDevicesVariable": "CUDA_VISIBLE_DEVICES",
            "env": {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
        },
        "rocm": {
            "vendor": "rocm",
            "image": "runtime-rocm:1",
            "resource": "amd.com/gpu",
            "visibleDevicesVariable": "HIP_VISIBLE_DEVICES",
            "env": {"HSA_NO_SCRATCH_RECLAIM": "1"},
            "startupFactor": 1.5,
        },
        "ascend": {
            "vendor": "ascend",
            "image": "runtime-ascend:1",
            "resource": "huawei.com/Ascend910",
            "visibleDevicesVariable": "ASCEND_RT_VISIBLE_DEVICES",
            "env": {"HCCL_CONNECT_TIMEOUT": "1200"},
            "mounts": [{"claim": "ascend-driver", "mountPath": "/usr/local/Ascend/driver"}],
            "startupFactor": 2,
        },
    },
    "pools": {
        "cpu": {"profile": "cpu"},
        "h200": {
            "profile": "nvidia",
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H200"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "runtimeClassName": "nvidia",
        },
        "mi300": {
            "profile": "rocm",
            "nodeSelector": {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"},
            "tolerations": [{"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
        "ascend910": {
            "profile": "ascend",
            "nodeSelector": {"accelerator": "huawei-Ascend910"},
            "tolerations": [{"key": "huawei.com/Ascend910", "operator": "Exists", "effect": "NoSchedule"}],
        },
    },
}
"""Pools of the four vendors, as the chart's values hold them."""

POOLS = tuple(CATALOG["pools"])


def a_catalog(changes: Mapping[str, Any] | None = None) -> AcceleratorCatalog:
    """The four pools; `changes` are laid over them, map by map."""
    return AcceleratorCatalog.model_validate(laid_over(CATALOG, changes or {}))


def some_settings(**changes: Any) -> Settings:
    return Settings.model_validate(
        {"accelerators": CATALOG, "frontend": FrontendSettings(image="frontend:1").model_dump(by_alias=True), **changes}
    )


def a_stage(name: str, pool: str = "cpu", **fields: Any) -> dict[str, Any]:
    """A stage of the fake engine, which needs no family."""
    return {"name": name, "fake": {"behavior": "echo"}, "accelerator": {"pool": pool}, **fields}


def a_spec(*stages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A chain of the given stages, of which the last gives the client a picture; without any, one of three on CPU."""
    chain = copy.deepcopy(list(stages) or [a_stage(name) for name in ("encoder", "denoiser", "decoder")])
    chain[-1].setdefault("output", {"modality": "image"})
    edges = [{"from": one["name"], "to": next_one["name"]} for one, next_one in itertools.pairwise(chain)]
    return {"model": {"source": "pvc://models/tiny"}, "stages": chain, "edges": edges, **fields}


def a_model(spec: dict[str, Any] | None = None, name: str = "toy", uid: str = "uid-1", **metadata: Any) -> Manifest:
    """As the API server gives it."""
    return {
        "apiVersion": wire.API_VERSION,
        "kind": wire.KIND,
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid,
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": CREATED,
            **metadata,
        },
        "spec": spec or a_spec(),
    }


def key_of(model: Manifest) -> ModelKey:
    return ModelKey(model["metadata"]["namespace"], model["metadata"]["name"])


def resolved(model: Manifest, catalog: AcceleratorCatalog | None = None) -> ResolvedModel:
    return resolve(model["metadata"]["name"], NAMESPACE, spec_of(model), catalog or a_catalog())


def inputs(model: Manifest, refresh: str | None = None) -> Inputs:
    return inputs_of(spec_of(model), resolved(model), refresh)


def a_record(model: Manifest, before: Record | None = None, settings: Settings | None = None) -> Record:
    settings = settings or some_settings()
    return render(resolved(model, settings.accelerators), inputs(model), before, settings)


def children_of(model: Manifest, settings: Settings | None = None) -> list[Manifest]:
    """What a new model becomes."""
    owner = Owner(model["metadata"]["name"], NAMESPACE, model["metadata"]["uid"], created=1_764_504_000)
    settings = settings or some_settings()
    return desired_children(resolved(model, settings.accelerators), a_record(model, settings=settings), owner, [])


def child(children: list[Manifest], kind: str, name: str) -> Manifest:
    return next(one for one in children if one["kind"] == kind and one["metadata"]["name"] == name)


def laid_over(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in upper.items():
        both_maps = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = laid_over(merged[key], value) if both_maps else value
    return merged
