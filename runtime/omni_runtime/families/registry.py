"""The model families by name. Adding one adds a folder and a line here; it is imported when it is first asked for."""

from omni_runtime.engines.protocol import UnusableEngineError
from omni_runtime.families.protocol import ArFamily, DiffusionFamily, Family, GenerationFamily, TalkerFamily
from omni_runtime.plugins import Plugin, Registry

FAMILIES: Registry[type[Family]] = Registry("family")
FAMILIES.register("qwen-image", Plugin("omni_runtime.families.qwen_image.family", "QwenImage"))
FAMILIES.register("qwen2.5-omni", Plugin("omni_runtime.families.qwen2_5_omni.family", "Qwen25Omni"))
FAMILIES.register("qwen3-omni", Plugin("omni_runtime.families.qwen3_omni.family", "Qwen3Omni"))


class NoSuchPartError(UnusableEngineError):
    """The family has no stage that an engine of this kind could run."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(f'family "{name}" has no {kind} stages; use another engine block')


def family(name: str) -> Family:
    return FAMILIES.factory(name)()


def ar_family(name: str) -> ArFamily:
    found = family(name).ar
    if found is None:
        raise NoSuchPartError(name, "ar")
    return found


def diffusion_family(name: str) -> DiffusionFamily:
    found = family(name).diffusion
    if found is None:
        raise NoSuchPartError(name, "diffusion")
    return found


def generation_family(name: str) -> GenerationFamily:
    found = family(name).generation
    if found is None:
        raise NoSuchPartError(name, "generation")
    return found


def talker_family(name: str) -> TalkerFamily:
    found = family(name).talker
    if found is None:
        raise NoSuchPartError(name, "talker")
    return found
