"""The parameters of a request as one stage sees them, for engines of stages that differ in what they read."""

from collections.abc import Mapping

from omni_contract.wire.payload import Value


def parameters_for(stage: str, parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Those that hold for every stage, under those that name this one, as in "talker.temperature". None is absent."""
    prefix = f"{stage}."
    own = {name.removeprefix(prefix): value for name, value in parameters.items() if name.startswith(prefix)}
    merged = {name: value for name, value in parameters.items() if "." not in name} | own
    return {name: value for name, value in merged.items() if value is not None}
