"""The stages of an old file: each with its number, its engine and the name that it gets."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from omni_contract.api.nearest import did_you_mean
from omni_contract.api.problems import Path
from omni_contract.api.v1alpha1.base import DNS_LABEL
from omni_contract.convert.keys import OldKind, Table, engine_of
from omni_contract.convert.sieve import Kept, Sieve, integer, shown, text
from omni_contract.convert.stage_keys import ENGINE_ARGS, SAMPLING, STAGE, STAGE_RUNTIME, TTS_ARGS

KINDS: Mapping[str, OldKind] = {"ar": "ar", "generation": "generation"}
LONGEST_NAME = 15
FOR_VLLM = "; if it is an argument of vLLM, remove it here and add it to ar.extraArgs of the result"


@dataclass(frozen=True, eq=False)
class OldStage:
    """One entry of stage_args, sieved."""

    path: Path
    id: int
    name: str
    kind: OldKind
    keys: Kept
    runtime: Kept
    engine: Kept
    sampling: Kept

    @property
    def devices(self) -> tuple[int, ...]:
        """Device numbers of the old host; empty if the file says nothing."""
        chosen = self.runtime.get("devices")
        return () if chosen is None else tuple(int(number) for number in str(chosen).split(","))


def old_stages(data: JsonValue, sieve: Sieve) -> tuple[OldStage, ...]:
    stages, names = list[OldStage](), set[str]()
    for path, item in sieve.items(data, ("stage_args",)):
        stage = _stage(item, path, names, sieve)
        if twin := next((other for other in stages if other.id == stage.id), None):
            sieve.wrong((*path, "stage_id"), f"stage_id {stage.id} is that of {twin.name}, too; each needs its own")
        stages.append(stage)
        names.add(stage.name)
    if not stages:
        sieve.wrong(("stage_args",), "there are no stages, so there is nothing to convert")
    return tuple(sorted(stages, key=lambda stage: stage.id))


def _stage(item: JsonValue, path: Path, taken: Iterable[str], sieve: Sieve) -> OldStage:
    keys = sieve.kept(item, STAGE, path)
    number = integer(keys, "stage_id")
    if number is None and isinstance(item, dict) and "stage_id" not in item:
        sieve.wrong(path, 'the key "stage_id" is missing')
    stage_id = int(str(path[-1])) if number is None else number
    inner = _Inner(keys, path, sieve)
    engine = inner.kept("engine_args", ENGINE_ARGS, FOR_VLLM)
    inner.kept("tts_args", TTS_ARGS)
    return OldStage(
        path=path,
        id=stage_id,
        name=_name(text(engine, "model_stage") or "", stage_id, taken),
        kind=_kind(engine, keys.get("engine_args"), path, sieve),
        keys=keys,
        runtime=inner.kept("runtime", STAGE_RUNTIME),
        engine=engine,
        sampling=inner.kept("default_sampling_params", SAMPLING),
    )


@dataclass(frozen=True)
class _Inner:
    """The maps inside a stage."""

    keys: Kept
    path: Path
    sieve: Sieve

    def kept(self, name: str, table: Table, beside: str = "") -> Kept:
        return self.sieve.kept(self.keys.get(name), table, (*self.path, name), beside)


def _kind(engine: Kept, written: JsonValue, path: Path, sieve: Sieve) -> OldKind:
    """What worker_type says. A refused class path still tells, for those who have it left out."""
    said = text(engine, "worker_type")
    if said is not None:
        if said not in KINDS:
            told = f"{shown(said)} is not one of: {', '.join(KINDS)}{did_you_mean(said, KINDS)}"
            sieve.wrong((*path, "engine_args", "worker_type"), told)
        return KINDS.get(said, "ar")
    classes = written if isinstance(written, dict) else {}
    for name in ("worker_cls", "scheduler_cls"):
        if found := engine_of(classes.get(name)):
            return found
    sieve.wrong(
        (*path, "engine_args"), "nothing says which engine the stage needs; set worker_type to ar or generation"
    )
    return "ar"


def name_of_part(part: str) -> str:
    """In the form of our names."""
    return part.lower().replace("_", "-").replace(".", "-")


def _name(part: str, stage_id: int, taken: Iterable[str]) -> str:
    """The part's name if it can be a stage's."""
    name = name_of_part(part)
    fits = re.fullmatch(DNS_LABEL, name) and len(name) <= LONGEST_NAME and name != "frontend"
    return name if fits and name not in taken else f"stage-{stage_id}"
