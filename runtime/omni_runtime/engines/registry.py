"""The engines that exist, by the name of their block in the stage file. A new one is a module and a line here."""

from omni_contract.api.v1alpha1.engines import ArEngine, DiffusionEngine, FakeEngine, GenerationEngine
from omni_contract.wire.stage_file import StageFile
from omni_runtime.engines.protocol import Engine, EngineFactory
from omni_runtime.plugins import Plugin, Registry

ENGINES: Registry[EngineFactory] = Registry("engine")
ENGINES.register("ar", Plugin("omni_runtime.engines.ar.engine", "create", extra="runtime"))
ENGINES.register("ar-transformers", Plugin("omni_runtime.engines.ar_transformers", "create", extra="runtime"))
ENGINES.register("diffusion", Plugin("omni_runtime.engines.diffusion", "create", extra="runtime"))
ENGINES.register("generation", Plugin("omni_runtime.engines.generation", "create", extra="runtime"))
ENGINES.register("fake", Plugin("omni_runtime.engines.fake", "create"))


def create_engine(stage_file: StageFile) -> Engine:
    """The engine that the stage file asks for, not loaded yet."""
    return ENGINES.factory(engine_name(stage_file))(stage_file)


def engine_name(stage_file: StageFile) -> str:
    match stage_file.engine:
        case ArEngine(backend="transformers"):
            return "ar-transformers"
        case ArEngine():
            return "ar"
        case DiffusionEngine():
            return "diffusion"
        case GenerationEngine():
            return "generation"
        case FakeEngine():
            return "fake"
