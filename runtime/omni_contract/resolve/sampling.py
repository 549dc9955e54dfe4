"""Defaults of request parameters: the family's under what the stages of the file say."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pydantic import JsonValue

from omni_contract.api.nearest import did_you_mean
from omni_contract.api.problems import Path, Problem
from omni_contract.api.v1alpha1 import DiffusionEngine, FrontendLimits, StageSpec
from omni_contract.presets import ParameterKind, Preset

Sampling: TypeAlias = Mapping[str, JsonValue]
KINDS: dict[ParameterKind, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "text": (str,)}


def sampling_of(stage: StageSpec, stages: Sequence[StageSpec], preset: Preset | None) -> Sampling:
    """The stage's defaults. The diffusion stages of a model make one picture together, so they share one map."""
    if not isinstance(stage.engine, DiffusionEngine):
        return stage.sampling
    shared: dict[str, JsonValue] = dict(preset.sampling) if preset else {}
    for other in _diffusion(stages):
        shared |= other.sampling
    return shared


def sampling_problems(stages: Sequence[tuple[Path, StageSpec]], preset: Preset | None) -> list[Problem]:
    """Unknown parameters, wrong types, and diffusion stages that contradict each other."""
    problems, said = list[Problem](), dict[str, tuple[str, JsonValue]]()
    for path, stage in stages:
        for key, value in stage.sampling.items():
            where = (*path, "sampling", key)
            if preset:
                problems += _unfit(preset, key, value, where)
            other, before = said.setdefault(key, (stage.name, value))
            if isinstance(stage.engine, DiffusionEngine) and before != value:
                problems.append(Problem(where, _contradiction(key, value, stage.name, other, before)))
    return problems


def limit_problems(
    stages: Sequence[tuple[Path, StageSpec]], preset: Preset | None, limits: FrontendLimits
) -> list[Problem]:
    """Defaults that the frontend's own limits would refuse in every request."""
    diffusion = _diffusion([stage for _, stage in stages])
    sampling = sampling_of(diffusion[0], diffusion, preset) if diffusion else {}
    steps, width, height = (sampling.get(key) for key in ("steps", "width", "height"))
    problems = []
    if isinstance(steps, int) and steps > limits.max_steps:
        message = f"{steps} steps by default are more than frontend.limits.maxSteps ({limits.max_steps})"
        problems.append(Problem(_said_at(stages, ("steps",)), f"{message}; lower one or raise the other"))
    if isinstance(width, int) and isinstance(height, int) and width * height > limits.max_image_pixels:
        message = f"{width}x{height} by default is more than frontend.limits.maxImagePixels ({limits.max_image_pixels})"
        where = _said_at(stages, ("width", "height"))
        problems.append(Problem(where, f"{message}; make the picture smaller or raise the limit"))
    return problems


def _said_at(stages: Sequence[tuple[Path, StageSpec]], keys: Sequence[str]) -> Path:
    """Where the file sets one of the parameters; the limits, if it leaves them to the family."""
    said = [(*path, "sampling", key) for path, stage in stages for key in keys if key in stage.sampling]
    return said[0] if said else ("spec", "frontend", "limits")


def _diffusion(stages: Sequence[StageSpec]) -> list[StageSpec]:
    return [stage for stage in stages if isinstance(stage.engine, DiffusionEngine)]


def _unfit(preset: Preset, key: str, value: JsonValue, where: Path) -> list[Problem]:
    if key not in preset.parameters:
        known = ", ".join(sorted(preset.parameters))
        hint = did_you_mean(key, preset.parameters)
        return [Problem(where, f'family "{preset.family}" has no parameter "{key}"{hint}; it reads {known}')]
    kind = preset.parameters[key]
    if isinstance(value, bool) or not isinstance(value, KINDS[kind]):
        return [Problem(where, f"{value!r} is not {'an' if kind == 'integer' else 'a'} {kind}")]
    return []


def _contradiction(key: str, value: JsonValue, stage: str, other: str, before: JsonValue) -> str:
    return (
        f'stage "{stage}" sets {key} to {value!r} and stage "{other}" to {before!r}; '
        "they make one picture together, so set it on one of them"
    )
