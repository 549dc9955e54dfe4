"""One old stage as an entry of spec.stages, and what of it had to be left out."""

from collections.abc import Iterator

from pydantic import JsonValue

from omni_contract.convert.keys import Table
from omni_contract.convert.old_stages import OldStage, name_of_part
from omni_contract.convert.sieve import Kept, Refused, Sieve, integer, shown, text
from omni_contract.convert.stage_keys import ENGINE_ARGS, SAMPLING, SAMPLING_OF_CODEC
from omni_contract.presets import Preset

MODALITIES = ("text", "image", "audio", "video")


def engine_block(stage: OldStage) -> dict[str, JsonValue]:
    """The settings of the engine, as the table says where each goes."""
    block: dict[str, JsonValue] = {}
    part = name_of_part(text(stage.engine, "model_stage") or "")
    if part and part != stage.name and stage.kind == "ar":
        block["part"] = part
    for key in _in_order(stage.engine, ENGINE_ARGS):
        _, _, field = ENGINE_ARGS[key].becomes.partition("ar.")
        if key == "dtype":
            block[key] = stage.engine[key]
        elif key == "gpu_memory_utilization" and stage.kind == "ar":
            block["memoryUtilization"] = stage.engine[key]
        elif field and ENGINE_ARGS[key].codec and stage.kind == "ar":
            _put(block, f"{field}.{key}" if field == "extraArgs" else field, _value(key, stage.engine[key]))
    return block


def left_out(stage: OldStage) -> list[str]:
    """Settings that only an ar stage has, with the reason."""
    if stage.kind == "ar":
        return []
    reasons = [(f"{key}: {shown(stage.engine[key])}", ENGINE_ARGS[key].codec) for key in stage.engine]
    if sampled := _in_order(stage.sampling, SAMPLING):
        reasons.append((", ".join(sampled), SAMPLING_OF_CODEC))
    return [f"left out: {key} ({reason})" for key, reason in reasons if reason]


def output(stage: OldStage, feeds_others: bool, sieve: Sieve) -> dict[str, JsonValue] | None:
    """What the caller gets of the stage; of one that says nothing, only if no other stage reads it."""
    final = stage.keys.get("final_output")
    if not (not feeds_others if final is None else final):
        return None
    said = text(stage.keys, "final_output_type")
    made = text(stage.engine, "engine_output_type")
    modality = said or (made if made != "latent" else None) or ("text" if stage.kind == "ar" else "audio")
    if modality not in MODALITIES:
        path = ("final_output_type",) if said else ("engine_args", "engine_output_type")
        sieve.wrong((*stage.path, *path), f"{shown(modality)} is not one of: {', '.join(MODALITIES)}")
    return {"modality": modality}


def limits(stage: OldStage, max_inflight: int | None) -> Iterator[tuple[str, JsonValue]]:
    """`max_inflight` is the file's default."""
    batch, own = integer(stage.runtime, "max_batch_size"), integer(stage.runtime, "max_inflight")
    in_flight = max_inflight if own is None else own
    if in_flight is not None:
        yield "maxInFlight", in_flight
    if batch is not None:
        yield "maxBatchSize", batch


def sampling(stage: OldStage, preset: Preset | None, sieve: Sieve) -> dict[str, JsonValue]:
    if stage.kind == "generation":
        return {}
    kept = [key for key in _in_order(stage.sampling, SAMPLING) if SAMPLING[key].becomes.startswith("sampling.")]
    for key in kept:
        if preset and key not in preset.parameters:
            reason = f'family "{preset.family}" has no such parameter and knows itself where its stages end'
            sieve.refuse(Refused((*stage.path, "default_sampling_params", key), reason))
    return {key: stage.sampling[key] for key in kept if preset is None or key in preset.parameters}


def _in_order(keys: Kept, table: Table) -> list[str]:
    """Of the table, so that equal files become equal ones."""
    return [name for name in table if name in keys]


def _value(key: str, value: JsonValue) -> JsonValue:
    return str(value) if key == "kv_cache_memory_bytes" else value


def _put(block: dict[str, JsonValue], field: str, value: JsonValue) -> None:
    """At a dotted place."""
    first, _, rest = field.partition(".")
    if not rest:
        block[first] = value
        return
    inner = block.setdefault(first, {})
    if isinstance(inner, dict):
        _put(inner, rest, value)
