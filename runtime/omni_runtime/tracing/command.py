"""`omni trace REQUEST`: one request's way through frontend, stages and edges, as a file for Chrome or Perfetto."""

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from omni_contract.cli.command import Command


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("request", help="the request's id, as the header x-request-id of its answer says it")
    parser.add_argument("--from", dest="source", type=Path, required=True, help="the folder given by --trace-dir")
    parser.add_argument("--out", type=Path, help="file to write (default: REQUEST.trace.json)")


def _run(arguments: Namespace) -> int:
    from omni_runtime.tracing.chrome import chrome_trace, spans_of_request
    from omni_runtime.tracing.span_files import read_spans

    source: Path = arguments.source
    if not source.is_dir():
        print(f"omni trace: {source} is not a folder; name the one given by --trace-dir", file=sys.stderr)
        return 2
    spans = spans_of_request(read_spans(source), arguments.request)
    if not spans:
        print(f"omni trace: no span of request {arguments.request} in {source}", file=sys.stderr)
        return 1
    out: Path = arguments.out or Path(f"{arguments.request.replace('/', '_')}.trace.json")
    out.write_text(json.dumps(chrome_trace(spans)))
    print(f"{out}: {len(spans)} spans; open it in chrome://tracing or ui.perfetto.dev")
    return 0


command = Command("trace", "write one request's spans as a Chrome trace", _configure, _run)
