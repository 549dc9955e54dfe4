"""Cases of performance in a file: loads by the flags of `omni bench serve`, each with baselines for its figures.

The file has the form of vLLM-Omni's runner of such cases. Pure; `command.py` runs them.
"""

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from omni_contract.api.nearest import did_you_mean
from omni_runtime.bench.metrics import figure_names
from omni_runtime.bench.settings import BenchError, BenchSettings, Target, add_arguments, settings_from

SWEPT = ("num_prompts", "request_rate", "max_concurrency")
"""May be lists: the load is then run once for each place of them, and their lengths agree."""
OF_A_CASE = ("test_name", "benchmark_params")
SERVER_PARAMS = "server_params"
PLACE = ("base_url", "host", "port", "api_key", "result_dir", "result_filename", "save_result")
"""What the command line says for all cases."""


@dataclass(frozen=True)
class Case:
    name: str
    settings: BenchSettings
    baseline: Mapping[str, float]


@dataclass(frozen=True)
class Held:
    """A figure beside its baseline."""

    name: str
    value: float | None
    """None if no request had any, as in a run in which all of them failed."""
    baseline: float

    @property
    def is_at_most(self) -> bool:
        """Times are to be short; everything else is to be much."""
        return self.name in ("duration", "failed") or self.name.endswith(("_ms", "_rtf"))

    @property
    def holds(self) -> bool:
        if self.value is None:
            return False
        return self.value <= self.baseline if self.is_at_most else self.value >= self.baseline

    def __str__(self) -> str:
        sign, verdict = "≤" if self.is_at_most else "≥", "ok" if self.holds else "WORSE"
        value = "no request has any" if self.value is None else f"{self.value:.4g}"
        return f"{verdict:6}{self.name}: {value} (baseline {sign} {self.baseline:g})"


class _Flags(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BenchError(message)


def read_cases(path: Path, at: Target) -> list[Case]:
    """Raises BenchError for a file that is none, naming the case and the key at fault."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as exc:
        raise BenchError(f"{path}: it cannot be read as JSON: {exc}") from exc
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise BenchError(f"{path}: send a list of cases, each with {' and '.join(OF_A_CASE)}")
    cases = [case for entry in found for case in _cases(entry, at)]
    names = [case.name for case in cases]
    if again := [name for name in names if names.count(name) > 1]:
        raise BenchError(f"{again[0]}: several cases have this name, under which each leaves its file")
    return cases


def held(case: Case, figures: Mapping[str, float]) -> list[Held]:
    return [Held(name, figures.get(name), bound) for name, bound in case.baseline.items()]


def _cases(entry: Mapping[str, Any], at: Target) -> Iterator[Case]:
    name, loads = entry.get("test_name"), entry.get("benchmark_params")
    if not isinstance(name, str) or not isinstance(loads, list) or not all(isinstance(one, dict) for one in loads):
        raise BenchError(f"a case has test_name, a text, and benchmark_params, a list of maps; got {entry}"[:400])
    for key in entry:
        if key == SERVER_PARAMS:
            text = "a model that is served already is measured: start it with omni serve, and name it by --base-url"
            raise BenchError(f"{name}: {SERVER_PARAMS} is not supported: {text}")
        if key not in OF_A_CASE:
            raise BenchError(f'{name}: there is no key "{key}"{did_you_mean(key, OF_A_CASE)}')
    if Path(name).name != name:
        raise BenchError(f'"{name}": a test_name is that of the file that the case leaves')
    runs = [run for load in loads for run in _swept(name, load)]
    for number, run in enumerate(runs):
        of_run = name if len(runs) == 1 else f"{name}-{number}"
        settings = _settings(of_run, run, at)
        yield Case(of_run, settings, _baseline(of_run, run.get("baseline", {}), figure_names(settings.report)))


def _swept(name: str, load: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A load with lists, as one with numbers for each of their places; baselines may be lists with them."""
    load = {key.replace("-", "_"): value for key, value in load.items()}
    lists = {key: value for key, value in load.items() if key in SWEPT and isinstance(value, list)}
    lengths = {len(value) for value in lists.values()}
    if len(lengths) > 1 or 0 in lengths:
        raise BenchError(f"{name}: {', '.join(lists)} are lists of unlike lengths, or empty")
    runs, baseline = lengths.pop() if lengths else 1, load.get("baseline", {})
    for place in range(runs):
        run = {**load, **{key: value[place] for key, value in lists.items()}}
        if isinstance(baseline, dict):
            run["baseline"] = {key: _at(name, key, value, place, runs) for key, value in baseline.items()}
        yield run


def _at(name: str, key: str, value: Any, place: int, runs: int) -> Any:
    if not isinstance(value, list):
        return value
    if len(value) != runs:
        raise BenchError(f"{name}: baseline {key} has {len(value)} values, and the load is run {runs} times")
    return value[place]


def _settings(name: str, run: Mapping[str, Any], at: Target) -> BenchSettings:
    parser = _Flags(add_help=False, allow_abbrev=False)
    add_arguments(parser)
    try:
        if said := [key for key in run if key in PLACE]:
            raise BenchError(f"{said[0]} is for all cases, on the command line")
        settings = settings_from(parser.parse_args([*_arguments(run)]))
    except BenchError as error:
        raise BenchError(f"{name}: {error}") from error
    target = replace(settings.target, url=at.url, api_key=at.api_key, model=settings.target.model or at.model)
    return replace(settings, target=target)


def _arguments(run: Mapping[str, Any]) -> Iterator[str]:
    for key, value in run.items():
        flag = f"--{key.replace('_', '-')}"
        if key == "baseline" or value is None or value is False:
            continue
        if value is True:
            yield flag
        else:
            yield f"{flag}={json.dumps(value) if isinstance(value, dict) else value}"


def _baseline(name: str, baseline: Any, known: Sequence[str]) -> dict[str, float]:
    if not isinstance(baseline, dict):
        raise BenchError(f"{name}: baseline is a map of figures, got {baseline!r}")
    for key, value in baseline.items():
        if key not in known:
            raise BenchError(f'{name}: there is no figure "{key}"{did_you_mean(key, known)}')
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BenchError(f"{name}: baseline {key} is a number, got {value!r}")
    return {key: float(value) for key, value in baseline.items()}
