"""Stage configuration files as vLLM-Omni reads them: a thinker and a codec, and what a test changes of them."""

import copy
import re
from collections.abc import Mapping
from typing import Any

import yaml

THINKER: Mapping[str, Any] = {
    "stage_id": 0,
    "engine_args": {"model_stage": "thinker", "worker_type": "ar"},
}
CODEC: Mapping[str, Any] = {
    "stage_id": 1,
    "engine_args": {"model_stage": "code2wav", "worker_type": "generation"},
    "engine_input_source": [0],
    "final_output": True,
    "final_output_type": "audio",
}


def old_stage_file(changes: Mapping[str, Any] | None = None) -> bytes:
    """`changes` by dotted path, as in "stage_args[0].engine_args.seed"; None takes a key away."""
    data: Any = copy.deepcopy({"stage_args": [dict(THINKER), dict(CODEC)]})
    for path, value in (changes or {}).items():
        *parents, last = [int(step) if step.isdecimal() else step for step in re.findall(r"[^.\[\]]+", path)]
        place = data
        for step in parents:
            place = place[step] if isinstance(step, int) else place.setdefault(step, {})
        if value is None:
            del place[last]
        else:
            place[last] = copy.deepcopy(value)
    text: str = yaml.safe_dump(data, sort_keys=False)
    return text.encode()
