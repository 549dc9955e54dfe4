"""Flags that users of vLLM and vLLM-Omni know: each is taken over, or refused with the way out. None is ignored.

Arguments of vLLM's engine go to every `ar` stage, by the same tables as keys of an old stage file; the number format
goes to every stage that has one.
"""

import json
from argparse import SUPPRESS, Action, ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from omni_contract.convert.keys import Key, Takes
from omni_contract.convert.stage_keys import ENGINE_ARGS

DEST = "engine_args"
OF_OLD_FILES = frozenset(
    {
        *("model_stage", "model_arch", "worker_type", "worker_cls", "scheduler_cls", "engine_output_type"),
        *("hf_config_name", "custom_process_next_stage_input_func"),
    }
)
"""Keys of a stage in a file, which are no arguments of vLLM."""
IN_A_CLUSTER = "every stage runs on this machine; on several ones, apply the model file to a cluster"
NOT_YET = "the diffusion engine has no such setting yet"
REFUSED: Mapping[str, str] = {
    "--stage-id": IN_A_CLUSTER,
    "--headless": IN_A_CLUSTER,
    "--omni-master-address": IN_A_CLUSTER,
    "-oma": IN_A_CLUSTER,
    "--omni-master-port": IN_A_CLUSTER,
    "-omp": IN_A_CLUSTER,
    "--ray-address": "stages are processes of their own, without Ray",
    "--worker-backend": "stages are processes of their own, without Ray; leave it out",
    "--uvicorn-log-level": "use --log-level, which is of every process",
    "--log-file": "what was measured goes to --stats-dir, log lines to stderr",
    "--init-timeout": "each stage has its own time to start; use --stage-init-timeout",
    "--init-sleep-seconds": "stages start together and are ready when they are",
    "--batch-timeout": "it is a field of a stage: batchTimeoutSeconds",
    "--shm-threshold-bytes": "an edge chooses its connector by the size of what it carries",
    "--tts-max-instructions-length": "instructions of speech have at most 500 characters",
    "--cfg-parallel-size": NOT_YET,
    "--usp": NOT_YET,
    "--use-hsdp": NOT_YET,
    "--hsdp-shard-size": NOT_YET,
    "--hsdp-replicate-size": NOT_YET,
    "--quantization-config": NOT_YET,
    "--enable-cpu-offload": NOT_YET,
    "--enable-layerwise-offload": NOT_YET,
    "--layerwise-num-gpu-layers": NOT_YET,
    "--cache-backend": NOT_YET,
    "--vae-use-slicing": NOT_YET,
    "--vae-use-tiling": NOT_YET,
}


class Refuse(Action):
    """Ends with the reason; `const` is it."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: object, option: str | None = None) -> None:
        parser.error(f"{option} is not supported: {self.const}")


class Take(Action):
    """Puts the value of an engine argument beside the others. Refuses a value that its key does not keep."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option: str | None = None) -> None:
        put(parser, namespace, str(self.const), values, option)


class TakeSwitch(BooleanOptionalAction):
    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: object, option: str | None = None) -> None:
        put(parser, namespace, self.dest, not (option or "").startswith("--no-"), option)


def add_foreign_flags(parser: ArgumentParser) -> None:
    parser.set_defaults(**{DEST: {}})
    parser.add_argument("--omni", action="store_true", help=SUPPRESS)
    for flag, reason in REFUSED.items():
        parser.add_argument(flag, action=Refuse, nargs="?", const=reason, dest=SUPPRESS, help=SUPPRESS)
    engine = parser.add_argument_group("arguments of vLLM, for every ar stage")
    for key in ENGINE_ARGS.values():
        if key.name not in OF_OLD_FILES:
            _add(engine.add_argument, key)


def engine_args_of(arguments: Namespace) -> Mapping[str, JsonValue]:
    return dict(getattr(arguments, DEST))


def put(parser: ArgumentParser, namespace: Namespace, name: str, value: JsonValue, option: str | None) -> None:
    key = ENGINE_ARGS[name]
    if not key.accepts(value):
        parser.error(f"{option} is not supported: {key.refused}")
    setattr(namespace, DEST, {**getattr(namespace, DEST), name: value})


def _add(add: Callable[..., Action], key: Key) -> None:
    flag = f"--{key.name.replace('_', '-')}"
    told = _told(key)
    if key.takes == "bool":
        add(flag, action=TakeSwitch, dest=key.name, default=SUPPRESS, help=told)
    else:
        add(flag, action=Take, const=key.name, dest=SUPPRESS, type=_reader(key.takes), metavar="VALUE", help=told)


def _told(key: Key) -> str:
    """What it does here, for the help."""
    if key.name == "dtype":
        return "over dtype of every stage in the model file, but for codecs that compute in one format alone"
    _, _, field = key.becomes.rpartition("ar.")
    if field == "extraArgs":
        return "handed on as it is"
    return f"over ar.{field.partition(' ')[0]} of the model file" if "ar." in key.becomes else key.becomes


def _reader(takes: Takes) -> Callable[[str], JsonValue]:
    match takes:
        case "integer":
            return int
        case "number":
            return float
        case "map":
            return _map
        case "any":
            return _any
    return str


def _map(text: str) -> JsonValue:
    """JSON, or KEY=NUMBER pairs with commas, as vLLM's examples have both."""
    try:
        pairs: Sequence[Sequence[str]] = [pair.split("=", 1) for pair in text.split(",")]
        found = json.loads(text) if text.startswith("{") else {name: int(number) for name, number in pairs}
    except ValueError as exc:
        raise ArgumentTypeError(f"send a JSON object, got {text}") from exc
    return dict(found)


def _any(text: str) -> JsonValue:
    """JSON where it is some, else the text itself."""
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value
