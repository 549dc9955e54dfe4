"""What is asked: requests drawn from a seed, or read from a file. Each data set is a function here."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

from omni_runtime.bench.media import Media, media_of
from omni_runtime.bench.sampler import around
from omni_runtime.bench.settings import BenchError, BenchSettings, Dataset
from omni_runtime.bench.words import PlainWords, TokenizerWords, Vocabulary

SHORTEST_TEXT = 4
LONGEST_PROMPT, LONGEST_TURN = 1024, 2048
"""Tokens. As others measure: conversations beyond are left out."""
TRACE_FIELDS = ("width", "height", "num_inference_steps", "num_frames", "fps", "seed")


@dataclass(frozen=True)
class Asked:
    """One request: `output_length` None leaves it to the model, `at_s` None to the request rate."""

    prompt: str
    input_length: int
    output_length: int | None = None
    media: tuple[Media, ...] = ()
    at_s: float | None = None
    slo_s: float | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    """That this request has beside."""


def requests_of(settings: BenchSettings) -> list[Asked]:
    """As many as are wanted; a file with fewer is read again from its beginning. Raises BenchError."""
    vocabulary: Vocabulary = PlainWords() if settings.tokenizer is None else TokenizerWords(settings.tokenizer)
    asked = DATASETS[settings.dataset](settings, vocabulary, Random(settings.load.seed))
    return list(islice(asked, settings.load.requests))


def _random(settings: BenchSettings, vocabulary: Vocabulary, dice: Random) -> Iterator[Asked]:
    lengths = settings.lengths
    prefix = vocabulary.text(dice, lengths.prefix)
    while True:
        size = max(around(dice, lengths.input, lengths.range_ratio), 0 if prefix else 1)
        output = max(around(dice, lengths.output, lengths.range_ratio), 1)
        text = f"{prefix} {vocabulary.text(dice, size)}".strip()
        yield Asked(text, lengths.prefix + size, output)


def _random_mm(settings: BenchSettings, vocabulary: Vocabulary, dice: Random) -> Iterator[Asked]:
    assert settings.media is not None
    for one in _random(settings, vocabulary, dice):
        media = tuple(media_of(dice, bucket) for bucket in settings.media.draw(dice))
        yield Asked(one.prompt, one.input_length, one.output_length, media)


def _sharegpt(settings: BenchSettings, vocabulary: Vocabulary, dice: Random) -> Iterator[Asked]:
    assert settings.dataset_path is not None
    turns = list(_turns(settings.dataset_path))
    dice.shuffle(turns)
    usable = []
    for prompt, answer in turns:
        size, output = vocabulary.length(prompt), settings.sharegpt_output or vocabulary.length(answer)
        if min(size, output) >= SHORTEST_TEXT and size <= LONGEST_PROMPT and size + output <= LONGEST_TURN:
            usable.append(Asked(prompt, size, output))
        if len(usable) == settings.load.requests:
            break
    if not usable:
        raise BenchError(f"{settings.dataset_path}: it holds no conversation of a usable length")
    return cycle(usable)


def _turns(path: Path) -> Iterator[tuple[str, str]]:
    """The first two turns of each conversation."""
    try:
        for entry in json.loads(_content(path)):
            first, second, *_ = [str(turn["value"]) for turn in entry["conversations"]] + ["", ""]
            if first and second:
                yield first, second
    except (ValueError, KeyError, TypeError) as exc:
        raise BenchError(f'{path}: it is no list of {{"conversations": [{{"value": TEXT}}, …]}} ({exc!r})') from exc


def _trace(settings: BenchSettings, vocabulary: Vocabulary, dice: Random) -> Iterator[Asked]:
    """A file with fewer lines than requests ends: coming again, its times would lie in the past."""
    assert settings.dataset_path is not None
    for number, line in enumerate(_content(settings.dataset_path).splitlines(), 1):
        if line.strip():
            try:
                yield _traced(json.loads(line), settings, vocabulary, dice)
            except (ValueError, TypeError, AttributeError) as exc:
                raise BenchError(f"{settings.dataset_path}:{number}: it is no request of a trace ({exc})") from exc


def _traced(line: Mapping[str, Any], settings: BenchSettings, vocabulary: Vocabulary, dice: Random) -> Asked:
    prompt = line.get("prompt")
    if prompt is None:
        prompt = vocabulary.text(dice, int(line.get("input_length", settings.lengths.input)))
    output, at_ms, slo_ms = line.get("output_length"), line.get("timestamp"), line.get("slo_ms")
    return Asked(
        prompt=str(prompt),
        input_length=vocabulary.length(str(prompt)),
        output_length=None if output is None else int(output),
        at_s=None if at_ms is None else float(at_ms) / 1000,
        slo_s=None if slo_ms is None else float(slo_ms) / 1000,
        fields={name: line[name] for name in TRACE_FIELDS if line.get(name) is not None},
    )


def _content(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeError) as exc:
        raise BenchError(f"{path}: {exc}") from exc


DATASETS: Mapping[Dataset, Callable[[BenchSettings, Vocabulary, Random], Iterator[Asked]]] = {
    "random": _random,
    "random-mm": _random_mm,
    "sharegpt": _sharegpt,
    "trace": _trace,
}
