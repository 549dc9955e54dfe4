"""Where spans go: flags that frontend and worker share."""

import argparse
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TracingSettings:
    """Without an endpoint or a folder nothing is recorded. `ratio` is the share of new traces that are."""

    endpoint: str | None = None
    directory: Path | None = None
    ratio: float = 1.0

    @property
    def is_on(self) -> bool:
        return self.endpoint is not None or self.directory is not None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--otlp-endpoint", help='send spans to this OTLP/gRPC collector, for example "http://otel:4317"'
    )
    parser.add_argument("--trace-dir", type=Path, help="write spans into this folder, for `omni trace`")
    parser.add_argument(
        "--trace-ratio", type=_ratio, default=1.0, help="share of requests to trace, 0 to 1 (default: %(default)s)"
    )


def settings_from(arguments: argparse.Namespace) -> TracingSettings:
    return TracingSettings(arguments.otlp_endpoint, arguments.trace_dir, arguments.trace_ratio)


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return ratio
