"""omni render: prints the manifests that the operator would make of a model file, without a cluster."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import yaml

from omni_contract.accelerators import AcceleratorCatalog, Pool, Vendor, VendorProfile
from omni_contract.api.load import InvalidFileError, load_file
from omni_contract.api.problems import InvalidModelError
from omni_contract.api.v1alpha1.resource import OmniModel
from omni_contract.cli.command import Command
from omni_contract.resolve import resolve
from omni_operator.build.children import desired_children
from omni_operator.build.unit import render
from omni_operator.errors import SettingsError
from omni_operator.objects import Manifest
from omni_operator.plan.inputs import inputs_of
from omni_operator.plan.observe import Owner
from omni_operator.settings import FrontendSettings, Settings, load_catalog

UNKNOWN_UID = "00000000-0000-0000-0000-000000000000"
FRONTEND_IMAGE = "omni-operator/frontend"
RUNTIME_IMAGE = "omni-operator/runtime-{vendor}"

RESOURCES = {Vendor.NVIDIA: "nvidia.com/gpu", Vendor.ROCM: "amd.com/gpu", Vendor.ASCEND: "huawei.com/Ascend910"}
VISIBLE_DEVICES = {
    Vendor.NVIDIA: "CUDA_VISIBLE_DEVICES",
    Vendor.ROCM: "HIP_VISIBLE_DEVICES",
    Vendor.ASCEND: "ASCEND_RT_VISIBLE_DEVICES",
}
"""As the chart's values have them."""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="model file")
    parser.add_argument(
        "--catalog", type=Path, metavar="FILE", help="accelerators as in the chart's values; default: a pool per vendor"
    )


def run(arguments: Namespace) -> int:
    try:
        catalog = load_catalog(arguments.catalog) if arguments.catalog else default_catalog()
        children = _rendered_file(arguments.file, catalog)
    except OSError as error:
        sys.stderr.write(f"{error.filename}: {error.strerror}\n")
        return 1
    except (InvalidFileError, SettingsError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    yaml.safe_dump_all(children, sys.stdout, sort_keys=False, width=120)
    return 0


def _rendered_file(path: Path, catalog: AcceleratorCatalog) -> list[Manifest]:
    loaded = load_file(path)
    try:
        return rendered(loaded.model, catalog)
    except InvalidModelError as error:
        raise InvalidFileError(str(path), loaded.findings(error.problems)) from error


def rendered(resource: OmniModel, catalog: AcceleratorCatalog) -> list[Manifest]:
    """The children of a model that is new to the cluster, but for the stored revision, which repeats them."""
    namespace = resource.metadata.namespace or "default"
    model = resolve(resource.metadata.name, namespace, resource.spec, catalog)
    settings = Settings(accelerators=catalog, frontend=FrontendSettings(image=FRONTEND_IMAGE))
    record = render(model, inputs_of(resource.spec, model, refresh=None), None, settings)
    owner = Owner(model.name, namespace, UNKNOWN_UID, created=0, is_suspended=resource.spec.suspend)
    _, *children = desired_children(model, record, owner, [])
    return children


def default_catalog() -> AcceleratorCatalog:
    """A profile and a pool of the same name for every vendor that has an image."""
    vendors = (Vendor.CPU, *RESOURCES)
    return AcceleratorCatalog(
        profiles={
            vendor.value: VendorProfile(
                vendor=vendor,
                image=RUNTIME_IMAGE.format(vendor=vendor),
                resource=RESOURCES.get(vendor),
                visible_devices_variable=VISIBLE_DEVICES.get(vendor),
            )
            for vendor in vendors
        },
        pools={vendor.value: Pool(profile=vendor.value) for vendor in vendors},
        allow_fake_engine=True,
    )


command = Command("render", "print the Kubernetes objects that a model file becomes", configure, run)
