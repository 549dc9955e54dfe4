"""Models as local mode sees them: the example resolved for a machine without accelerators."""

from pathlib import Path

from omni_contract.api.load import load_model
from omni_contract.resolve import ResolvedModel, resolve
from omni_runtime.local.catalog import local_catalog
from omni_runtime.local.devices import Machine

CHECKOUT = Path(__file__).parents[2]
EXAMPLE = CHECKOUT / "examples" / "tiny-qwen-image.yaml"
CPU_ONLY = Machine({})


def example_model(machine: Machine = CPU_ONLY) -> ResolvedModel:
    spec = load_model(EXAMPLE).spec
    return resolve("tiny-qwen-image", "default", spec, local_catalog(spec, machine, allow_fake_engine=False))
