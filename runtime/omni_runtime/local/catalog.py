"""The accelerator catalog of this machine: every pool that the model names, mapped to a kind of device that is here."""

from omni_contract.accelerators import AcceleratorCatalog, Pool, Vendor, VendorProfile
from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.api.v1alpha1.stage import AcceleratorSpec
from omni_runtime.local.devices import DEVICE_KINDS, Machine
from omni_runtime.local.errors import InputError

LOCAL_IMAGE = "local"
"""Stands where a cluster names an image; local processes run in this Python environment."""


def local_catalog(spec: OmniModelSpec, machine: Machine, allow_fake_engine: bool) -> AcceleratorCatalog:
    """Raises InputError for a pool that this machine does not have. A model that names no pool gets the best device."""
    named = {stage.accelerator.pool for stage in spec.stages if stage.accelerator.pool is not None}
    names = sorted(named) or [machine.vendors[0].value]
    return AcceleratorCatalog(
        profiles={vendor.value: _profile(vendor) for vendor in machine.vendors},
        pools={name: Pool(profile=_vendor_of(name, machine).value) for name in names},
        allow_fake_engine=allow_fake_engine,
        stages_share_memory=True,
    )


def without_pools(spec: OmniModelSpec) -> OmniModelSpec:
    """The model as if its file named no pool and no device count: `--device` decides for every stage."""
    stages = tuple(stage.model_copy(update={"accelerator": AcceleratorSpec()}) for stage in spec.stages)
    return spec.model_copy(update={"stages": stages})


def only(device: Vendor, machine: Machine) -> Machine:
    """The machine as if it had no other accelerators. Raises InputError if it does not have this one."""
    if device not in machine.vendors:
        raise InputError(f"--device {device}: this machine has {_listed(machine)}")
    return Machine({vendor: names for vendor, names in machine.devices.items() if vendor is device})


def _vendor_of(pool: str, machine: Machine) -> Vendor:
    """A pool named after a vendor means that vendor; any other means this machine's accelerator."""
    named = next((vendor for vendor in Vendor if vendor.value == pool), None)
    vendor = named or machine.accelerator
    if vendor is None or vendor not in machine.vendors:
        raise InputError(
            f'accelerator pool "{pool}": this machine has {_listed(machine)}; run it on the CPU with --device cpu'
        )
    return vendor


def _listed(machine: Machine) -> str:
    return ", ".join(
        vendor.value if vendor is Vendor.CPU else f"{vendor.value} ({len(machine.devices[vendor])})"
        for vendor in machine.vendors
    )


def _profile(vendor: Vendor) -> VendorProfile:
    kind = DEVICE_KINDS.get(vendor)
    return VendorProfile(
        vendor=vendor,
        image=LOCAL_IMAGE,
        resource=None if kind is None else f"local/{vendor.value}",
        visible_devices_variable=None if kind is None else kind.visible_variable,
    )
