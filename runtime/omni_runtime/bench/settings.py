"""What `omni bench serve` was asked to do, read once from the command line."""

import ast
import json
import math
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from omni_runtime.bench.sampler import Bucket, Kind, MediaMix, SamplingError

Backend: TypeAlias = Literal["openai-chat-omni", "openai-completions", "openai-speech", "openai-images"]
Dataset: TypeAlias = Literal["random", "random-mm", "sharegpt", "trace"]
PATHS: Mapping[Backend, str] = {
    "openai-chat-omni": "/v1/chat/completions",
    "openai-completions": "/v1/completions",
    "openai-speech": "/v1/audio/speech",
    "openai-images": "/v1/images/generations",
}
METRICS = ("ttft", "tpot", "itl", "e2el", "audio_ttfp", "audio_rtf", "audio_duration")
KINDS: tuple[Kind, ...] = ("image", "video", "audio")
DEFAULT_BUCKETS = "{(256, 256, 1): 0.5, (720, 1280, 1): 0.5}"
DEFAULT_LIMITS = '{"image": 255, "video": 255, "audio": 255}'
MEASURABLE = ("wav", "pcm", "pcm16")


class BenchError(Exception):
    """Why the benchmark cannot run, in words for the person at the terminal."""


@dataclass(frozen=True)
class Target:
    url: str
    """Without a path."""
    backend: Backend = "openai-chat-omni"
    path: str = PATHS["openai-chat-omni"]
    model: str | None = None
    """None: the first one that is served there."""
    api_key: str | None = None
    timeout_s: float = 600.0


@dataclass(frozen=True)
class Load:
    """`max_concurrency` None sets no bound."""

    requests: int = 1000
    rate: float = math.inf
    burstiness: float = 1.0
    max_concurrency: int | None = None
    warmups: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Lengths:
    """Of random text, in tokens."""

    prefix: int = 0
    input: int = 1024
    output: int = 128
    range_ratio: float = 0.0


@dataclass(frozen=True)
class Report:
    metrics: tuple[str, ...] = METRICS
    percentiles: tuple[float, ...] = (99.0,)
    is_saved: bool = False
    is_detailed: bool = False
    directory: Path = Path()
    file: str | None = None
    label: str | None = None
    shows_progress: bool = True


@dataclass(frozen=True)
class BenchSettings:
    target: Target
    dataset: Dataset = "random"
    dataset_path: Path | None = None
    load: Load = field(default_factory=Load)
    lengths: Lengths = field(default_factory=Lengths)
    media: MediaMix | None = None
    sharegpt_output: int | None = None
    tokenizer: Path | None = None
    ignore_eos: bool = False
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    report: Report = field(default_factory=Report)


def add_arguments(parser: ArgumentParser) -> None:
    _add_target(parser)
    _add_load(parser)
    _add_data(parser)
    _add_report(parser)


def settings_from(arguments: Namespace) -> BenchSettings:
    """Raises BenchError for what does not go together."""
    needs_file = arguments.dataset_name in ("sharegpt", "trace")
    if needs_file != (arguments.dataset_path is not None):
        which = "needs its file" if needs_file else "is made here and takes no file"
        raise BenchError(f"--dataset-path: data set {arguments.dataset_name} {which}")
    if not 0 <= arguments.random_range_ratio < 1:
        raise BenchError(f"--random-range-ratio {arguments.random_range_ratio:g}: it is from 0 to below 1")
    if arguments.request_rate <= 0 or arguments.burstiness <= 0:
        raise BenchError("--request-rate and --burstiness must be above 0")
    backend: Backend = arguments.backend
    return BenchSettings(
        target=_target(arguments, backend),
        dataset=arguments.dataset_name,
        dataset_path=arguments.dataset_path,
        load=Load(
            requests=_positive("--num-prompts", arguments.num_prompts),
            rate=arguments.request_rate,
            burstiness=arguments.burstiness,
            max_concurrency=arguments.max_concurrency and _positive("--max-concurrency", arguments.max_concurrency),
            warmups=arguments.num_warmups,
            seed=arguments.seed,
        ),
        lengths=Lengths(
            arguments.random_prefix_len,
            arguments.random_input_len,
            arguments.random_output_len,
            arguments.random_range_ratio,
        ),
        media=_media(arguments, backend),
        sharegpt_output=arguments.sharegpt_output_len,
        tokenizer=arguments.tokenizer,
        ignore_eos=arguments.ignore_eos,
        extra_body=_extra_body(arguments.extra_body),
        report=_report(arguments),
    )


def add_place(parser: ArgumentParser) -> None:
    parser.add_argument("--base-url", metavar="URL", help="where the endpoint is, in place of --host and --port")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--model", help="its name (default: the first one that is served there)")
    parser.add_argument("--api-key", help="if the endpoint asks for one")


def place_from(arguments: Namespace) -> Target:
    url = arguments.base_url or f"http://{arguments.host}:{arguments.port}"
    return Target(url.rstrip("/").removesuffix("/v1"), model=arguments.model, api_key=arguments.api_key)


def _add_target(parser: ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("--backend", choices=get_args(Backend), default="openai-chat-omni")
    parser.add_argument("--endpoint", metavar="PATH", help="default: that of the backend")
    parser.add_argument("--request-timeout", type=float, default=600.0, help="seconds (default: %(default)s)")


def _add_load(parser: ArgumentParser) -> None:
    parser.add_argument("--num-prompts", type=int, default=1000, help="requests (default: %(default)s)")
    parser.add_argument("--num-warmups", type=int, default=0, help="requests before those that count")
    parser.add_argument("--max-concurrency", type=int, help="most requests at once; may lower the rate")
    parser.add_argument(
        "--request-rate", type=float, default=math.inf, help="requests a second; inf (default) sends all at once"
    )
    parser.add_argument(
        "--burstiness", type=float, default=1.0, help="1 (default) is a Poisson process, less comes in bursts"
    )
    parser.add_argument("--seed", type=int, default=0, help="of data, arrivals and the answers (default: 0)")
    parser.add_argument("--ignore-eos", action="store_true", help="let each answer have its full length")
    parser.add_argument("--extra-body", "--extra_body", metavar="JSON", help="fields that each request has beside")


def _add_data(parser: ArgumentParser) -> None:
    parser.add_argument("--dataset-name", choices=get_args(Dataset), default="random")
    parser.add_argument("--dataset-path", type=Path, metavar="FILE", help="of sharegpt and trace")
    parser.add_argument(
        "--tokenizer", type=Path, metavar="DIR", help="counts tokens exactly; words are counted without"
    )
    parser.add_argument("--random-prefix-len", type=int, default=0, help="tokens that all requests begin with")
    parser.add_argument("--random-input-len", type=int, default=1024)
    parser.add_argument("--random-output-len", type=int, default=128)
    parser.add_argument("--random-range-ratio", type=float, default=0.0, help="lengths differ by up to so much")
    parser.add_argument("--random-mm-base-items-per-request", type=int, default=1)
    parser.add_argument("--random-mm-num-mm-items-range-ratio", type=float, default=0.0)
    parser.add_argument("--random-mm-limit-mm-per-prompt", metavar="JSON", default=DEFAULT_LIMITS)
    parser.add_argument(
        "--random-mm-bucket-config",
        metavar="DICT",
        default=DEFAULT_BUCKETS,
        help="(height, width, frames): weight; height 0 is a sound of `width` seconds (default: %(default)s)",
    )
    parser.add_argument("--sharegpt-output-len", type=int, help="default: as long as the answer in the file")


def _add_report(parser: ArgumentParser) -> None:
    parser.add_argument("--percentile-metrics", default=",".join(METRICS), help="default: all")
    parser.add_argument("--metric-percentiles", default="99", help="of them, separated by commas (default: 99)")
    parser.add_argument("--save-result", action="store_true", help="write a JSON file")
    parser.add_argument("--save-detailed", action="store_true", help="with what each request took")
    parser.add_argument("--result-dir", type=Path, default=Path(), metavar="DIR")
    parser.add_argument("--result-filename", metavar="FILE", help="default: LABEL-RATEqps-MODEL-TIME.json")
    parser.add_argument("--label", help="default: the backend")
    parser.add_argument("--disable-tqdm", "--quiet", action="store_true", dest="quiet", help="show no progress")


def _target(arguments: Namespace, backend: Backend) -> Target:
    path = arguments.endpoint or PATHS[backend]
    return replace(place_from(arguments), backend=backend, path=path, timeout_s=arguments.request_timeout)


def _report(arguments: Namespace) -> Report:
    metrics = tuple(arguments.percentile_metrics.split(","))
    if wrong := [name for name in metrics if name not in METRICS]:
        raise BenchError(f'--percentile-metrics: there is no "{wrong[0]}"; use {", ".join(METRICS)}')
    try:
        percentiles = tuple(float(one) for one in arguments.metric_percentiles.split(","))
    except ValueError:
        percentiles = ()
    if not percentiles or not all(0 <= one <= 100 for one in percentiles):
        raise BenchError(f"--metric-percentiles {arguments.metric_percentiles}: send numbers from 0 to 100")
    return Report(
        metrics=metrics,
        percentiles=percentiles,
        is_saved=arguments.save_result or arguments.save_detailed,
        is_detailed=arguments.save_detailed,
        directory=arguments.result_dir,
        file=arguments.result_filename,
        label=arguments.label,
        shows_progress=not arguments.quiet,
    )


def _media(arguments: Namespace, backend: Backend) -> MediaMix | None:
    if arguments.dataset_name != "random-mm":
        return None
    if backend != "openai-chat-omni":
        raise BenchError(f"--dataset-name random-mm: only chats take media, {backend} does not")
    try:
        return MediaMix(
            base_items=arguments.random_mm_base_items_per_request,
            range_ratio=_ratio(arguments.random_mm_num_mm_items_range_ratio),
            limits=_limits(arguments.random_mm_limit_mm_per_prompt),
            buckets=_buckets(arguments.random_mm_bucket_config),
        )
    except SamplingError as error:
        raise BenchError(str(error)) from error


def _ratio(value: float) -> float:
    if not 0 <= value <= 1:
        raise BenchError(f"--random-mm-num-mm-items-range-ratio {value:g}: it is from 0 to 1")
    return value


def _limits(text: str) -> Mapping[Kind, int]:
    limits = _json_object("--random-mm-limit-mm-per-prompt", text)
    for kind, most in limits.items():
        if kind not in KINDS or not isinstance(most, int) or most < 0:
            raise BenchError(f"--random-mm-limit-mm-per-prompt: {kind}: {most!r}; name {', '.join(KINDS)} with numbers")
    return {kind: limits.get(kind, 0) for kind in KINDS}


def _buckets(text: str) -> Mapping[Bucket, float]:
    try:
        found = {Bucket(*_shape(shape)): float(weight) for shape, weight in ast.literal_eval(text).items()}
    except (ValueError, SyntaxError, TypeError, AttributeError) as exc:
        raise BenchError(f"--random-mm-bucket-config: send {DEFAULT_BUCKETS}, got {text!r}") from exc
    if not any(weight > 0 for weight in found.values()) or min(found.values()) < 0:
        raise BenchError("--random-mm-bucket-config: weights are 0 or more, and not all of them 0")
    return found


def _shape(shape: Sequence[int]) -> Sequence[int]:
    if len(shape) != 3 or shape[0] < 0 or min(shape[1:]) < 1:
        raise ValueError(f"{shape} is no (height, width, frames)")
    return shape


def _extra_body(text: str | None) -> Mapping[str, Any]:
    extra = {} if text is None else _json_object("--extra-body", text)
    audio = extra.get("audio")
    wanted = extra.get("response_format") or (audio.get("format") if isinstance(audio, dict) else None)
    if isinstance(wanted, str) and wanted not in MEASURABLE and wanted != "b64_json":
        raise BenchError(f"--extra-body: how long a sound is can be told of {', '.join(MEASURABLE)}, not of {wanted}")
    return extra


def _json_object(flag: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as exc:
        raise BenchError(f"{flag}: it is no JSON: {exc}") from exc
    if not isinstance(found, dict):
        raise BenchError(f"{flag}: send a JSON object, got {text}")
    return found


def _positive(flag: str, value: int) -> int:
    if value < 1:
        raise BenchError(f"{flag} {value}: it must be at least 1")
    return value
