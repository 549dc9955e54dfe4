"""The model families by name. Adding one adds a folder and a line here; it is imported when it is first asked for."""

from omni_runtime.engines.protocol import UnusableEngineError
from omni_runtime.families.protocol import DiffusionFamily, Family
from omni_runtime.plugins import Plugin, Registry

FAMILIES: Registry[type[Family]] = Registry("family")
FAMILIES.register("qwen-image", Plugin("omni_runtime.families.qwen_image.family", "QwenImage"))
FAMILIES.register("qwen2.5-omni", Plugin("omni_runtime.families.qwen2_5_omni.family", "Qwen25Omni"))
FAMILIES.register("qwen3-omni", Plugin("omni_runtime.families.qwen3_omni.family", "Qwen3Omni"))


class NoDiffusionPartError(UnusableEngineError):
    """The family has no stage that a diffusion engine could run."""


def family(name: str) -> Family:
    return FAMILIES.factory(name)()


def diffusion_family(name: str) -> DiffusionFamily:
    found = family(name).diffusion
    if found is None:
        raise NoDiffusionPartError(f'family "{name}" has no diffusion stages; use another engine block')
    return found
