"""The model that `omni serve` was given: its own file or an old stage file, and what the command line says over it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from omni_contract.api.load import InvalidFileError, load_model, read_models
from omni_contract.api.v1alpha1 import OmniModelSpec, StageSpec
from omni_contract.api.v1alpha1.resource import OmniModel
from omni_contract.api.yaml_file import MAX_BYTES
from omni_contract.convert import Choices, convert
from omni_contract.convert.old_stages import OldStage
from omni_contract.convert.stage_fields import engine_block
from omni_contract.resolve.graph import preset_of, stage_graph
from omni_runtime.local.errors import InputError
from omni_runtime.local.settings import ServeSettings

DTYPE = "dtype"


def model_of(settings: ServeSettings, say: Callable[[str], None]) -> OmniModel:
    """`say` hears what of an old file was left out. Raises InvalidFileError, InputError or OSError."""
    old = settings.stage_configs
    model = load_model(settings.file) if old is None else converted(old, settings, say)
    spec = overridden(model.spec, settings.engine_args, settings.stage_init_timeout_s)
    return model.model_copy(update={"spec": spec})


def converted(path: Path, settings: ServeSettings, say: Callable[[str], None]) -> OmniModel:
    """What `omni convert` makes of it. Raises InvalidFileError with all that cannot be kept."""
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    choices = Choices(str(path), source=settings.checkpoint)
    made = convert(content, choices)
    if made.findings and settings.skips_refused:
        refused, made = made.findings, convert(content, replace(choices, skip_refused=True))
        for found in refused if not made.findings else ():
            say(f"{path}:{found.position.line}:{found.position.column}: left out: {found}")
    if made.findings:
        raise InvalidFileError(str(path), made.findings)
    if made.notes:
        raise InputError(f"{path} cannot be served: {'; '.join(made.notes)}")
    [loaded] = read_models(made.text.encode()).models
    return loaded.model


def overridden(
    spec: OmniModelSpec, engine_args: Mapping[str, JsonValue], stage_init_timeout_s: float | None
) -> OmniModelSpec:
    """Engine arguments for every ar stage; a number format and a time to start for all.

    Raises InputError for what no field takes.
    """
    changed = dict(engine_args)
    if (load_format := changed.pop("load_format", None)) is not None:
        spec = _validated(OmniModelSpec, {**_said(spec), "model": {**_said(spec.model), "loadFormat": load_format}})
    if not changed and stage_init_timeout_s is None:
        return spec
    preset = preset_of(spec)
    graph = stage_graph(spec, preset).stages
    if useless := [name for name in changed if not any(_takes(stage, name) for stage in graph)]:
        kinds = "no stage with a number format" if useless == [DTYPE] else "no ar stage"
        raise InputError(f"{', '.join(map(_flag, useless))}: arguments of vLLM, and the model has {kinds}")
    own = {stage.name: stage for stage in spec.stages}
    fixed = preset.number_formats if preset else {}
    of_all = {name: value for name, value in changed.items() if name != DTYPE}
    stages = [
        _stage(own.get(stage.name), stage, of_all if stage.name in fixed else changed, stage_init_timeout_s)
        for stage in graph
    ]
    return spec.model_copy(update={"stages": tuple(stages)})


def _takes(stage: StageSpec, name: str) -> bool:
    """Whether an argument of vLLM's engine means something to the stage: of a codec, its number format does."""
    return stage.ar is not None or (name == DTYPE and hasattr(stage.engine, DTYPE))


def _stage(
    own: StageSpec | None, whole: StageSpec, engine_args: Mapping[str, JsonValue], timeout_s: float | None
) -> StageSpec:
    """What the file says of the stage, with the command line over it; what a preset says lies under both."""
    said: dict[str, Any] = {"name": whole.name} if own is None else _said(own)
    if whole.ar is not None:
        old = OldStage((), 0, whole.name, "ar", {}, {}, dict(engine_args), {})
        block, before = engine_block(old), said.get("ar") or {}
        extra = {**before.get("extraArgs", {}), **block.pop("extraArgs", {})}  # type: ignore[dict-item]
        said["ar"] = {**before, **block, **({"extraArgs": extra} if extra else {})}
    elif DTYPE in engine_args and whole.engine is not None and _takes(whole, DTYPE):
        kind = whole.engine.kind
        said[kind] = {**(said.get(kind) or {}), DTYPE: engine_args[DTYPE]}
    if timeout_s is not None:
        said["startupTimeoutSeconds"] = timeout_s
    stage: StageSpec = _validated(StageSpec, said)
    return stage


def _said(model: Any) -> dict[str, Any]:
    said: dict[str, Any] = model.model_dump(by_alias=True, exclude_unset=True)
    return said


def _validated(kind: Any, said: Mapping[str, Any]) -> Any:
    try:
        return kind.model_validate(said)
    except ValidationError as exc:
        problem = exc.errors()[0]
        raise InputError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}, got {problem['input']!r}") from exc


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
