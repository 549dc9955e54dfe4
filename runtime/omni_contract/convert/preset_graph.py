"""What a family's preset would make of the old stages: its stages and the file's must be the same ones."""

from dataclasses import replace

from omni_contract.api.nearest import did_you_mean
from omni_contract.convert.old_stages import OldStage
from omni_contract.convert.sieve import Refused, Sieve
from omni_contract.presets import Preset

ALONE = "-only"


def of_preset(stages: tuple[OldStage, ...], preset: Preset, sieve: Sieve) -> tuple[OldStage, ...]:
    """The stages under names that mean what the file means.

    A preset adds the stages that a file leaves out. The first stage alone gets a name that no preset has, so that it
    stays alone; a larger part of the graph would lack what the preset knows of its engines.
    """
    known = [stage.name for stage in preset.stages]
    names = [stage.name for stage in stages]
    if names == known[:1] and len(known) > 1:
        return (replace(stages[0], name=f"{names[0]}{ALONE}"),)
    spoken = {stage.name for stage in preset.stages if stage.output}
    for stage in stages:
        if stage.name in spoken and stage.keys.get("final_output") is False:
            reason = f'false cannot be kept: family "{preset.family}" gives callers what this stage makes'
            sieve.refuse(Refused((*stage.path, "final_output"), reason))
        if stage.name not in known:
            told = f'"{stage.name}" is no stage of family "{preset.family}"{did_you_mean(stage.name, known)}'
            path = (*stage.path, "engine_args", "model_stage")
            sieve.wrong(path, f"{told}; set model_stage to one of: {', '.join(known)}")
    if missing := [name for name in known if name not in names]:
        told = f'family "{preset.family}" has the stages {", ".join(known)}, and the file lacks {", ".join(missing)}'
        sieve.wrong(("stage_args",), f'{told}; add them, or keep "{known[0]}" alone')
    return stages
