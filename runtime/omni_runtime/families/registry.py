"""The model families by name. Adding one adds a folder and a line here; it is imported when it is first asked for."""

from typing import TypeVar

from omni_runtime.engines.protocol import UnusableEngineError
from omni_runtime.families.protocol import ArFamily, DiffusionFamily, Family, GenerationFamily, TalkerFamily
from omni_runtime.plugins import Plugin, Registry

Part = TypeVar("Part")

FAMILIES: Registry[type[Family]] = Registry("family")
FAMILIES.register("qwen-image", Plugin("omni_runtime.families.qwen_image.family", "QwenImage"))
FAMILIES.register("qwen2.5-omni", Plugin("omni_runtime.families.qwen2_5_omni.family", "Qwen25Omni"))
FAMILIES.register("qwen3-omni", Plugin("omni_runtime.families.qwen3_omni.family", "Qwen3Omni"))
FAMILIES.register("qwen3-tts", Plugin("omni_runtime.families.qwen3_tts.family", "Qwen3TTS"))


class NoSuchPartError(UnusableEngineError):
    """The family has no stage that an engine of this kind could run."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(f'family "{name}" has no {kind} stages; use another engine block')


def family(name: str) -> Family:
    return FAMILIES.factory(name)()


def ar_family(name: str) -> ArFamily:
    return _offered(family(name).ar, name, "ar")


def diffusion_family(name: str) -> DiffusionFamily:
    return _offered(family(name).diffusion, name, "diffusion")


def generation_family(name: str) -> GenerationFamily:
    return _offered(family(name).generation, name, "generation")


def talker_family(name: str) -> TalkerFamily:
    return _offered(family(name).talker, name, "talker")


def _offered(part: Part | None, name: str, kind: str) -> Part:
    if part is None:
        raise NoSuchPartError(name, kind)
    return part
