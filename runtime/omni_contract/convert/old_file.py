"""A whole old stage file as values: what can be kept of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from omni_contract.api.nearest import did_you_mean
from omni_contract.convert.file_keys import DEFAULTS, FILE, RUNTIME
from omni_contract.convert.old_edges import OldConnector, OldEdge, OldLinks, old_connectors
from omni_contract.convert.old_stages import OldStage, old_stages
from omni_contract.convert.sieve import Refused, Sieve, integer, shown, text

FAMILIES: Mapping[str, str] = {
    "Qwen2_5OmniForConditionalGeneration": "qwen2.5-omni",
    "Qwen3OmniMoeForConditionalGeneration": "qwen3-omni",
    "Qwen3TTSForConditionalGeneration": "qwen3-tts",
}
"""By the architecture that the old file names."""


@dataclass(frozen=True)
class OldFile:
    stages: tuple[OldStage, ...]
    edges: tuple[OldEdge, ...]
    connectors: tuple[OldConnector, ...]
    """Those that are declared by name, used or not, and those of edges."""
    family: str | None
    async_chunk: bool | None
    max_inflight: int | None
    load_format: str


def old_file(data: JsonValue, sieve: Sieve) -> OldFile:
    """The sieve hears of everything that cannot be kept."""
    file = sieve.kept(data, FILE, ())
    runtime = sieve.kept(file.get("runtime"), RUNTIME, ("runtime",))
    defaults = sieve.kept(runtime.get("defaults"), DEFAULTS, ("runtime", "defaults"))
    stages = old_stages(file.get("stage_args"), sieve)
    declared = old_connectors(runtime.get("connectors"), sieve)
    links = OldLinks(stages, declared, sieve)
    edges = links.edges(runtime.get("edges"), file.get("connectors"), "window_size" in defaults)
    async_chunk = file.get("async_chunk")
    return OldFile(
        stages=stages,
        edges=edges,
        connectors=tuple(dict.fromkeys([*declared.values(), *(edge.connector for edge in edges if edge.connector)])),
        family=_family(stages, sieve),
        async_chunk=async_chunk if isinstance(async_chunk, bool) else None,
        max_inflight=integer(defaults, "max_inflight"),
        load_format=_load_format(stages, sieve),
    )


def _family(stages: tuple[OldStage, ...], sieve: Sieve) -> str | None:
    families = set[str]()
    for stage in stages:
        architecture = text(stage.engine, "model_arch")
        path = (*stage.path, "engine_args", "model_arch")
        if architecture is None:
            continue
        if architecture in FAMILIES:
            families.add(FAMILIES[architecture])
        else:
            known = ", ".join(FAMILIES)
            hint = did_you_mean(architecture, FAMILIES)
            reason = f"{shown(architecture)} is the architecture of no family{hint}"
            sieve.refuse(Refused(path, reason, f"the architectures are: {known}"))
        if len(families) > 1:
            sieve.wrong(path, f"the stages are of several families, {', '.join(sorted(families))}; a model has one")
            return None
    return next(iter(families), None)


def _load_format(stages: tuple[OldStage, ...], sieve: Sieve) -> str:
    """A model's, not a stage's."""
    said = {stage: text(stage.engine, "load_format") or "auto" for stage in stages}
    for stage, chosen in said.items():
        path = (*stage.path, "engine_args", "load_format")
        if chosen not in ("auto", "dummy"):
            sieve.refuse(Refused(path, f"{shown(chosen)} cannot be kept: checkpoints are read as they are"))
        elif chosen != next(iter(said.values())):
            sieve.wrong(path, f"the weights are {chosen} here and not in the first stage; a model has one load_format")
    first = next(iter(said.values()), "auto")
    return first if first == "dummy" else "auto"
