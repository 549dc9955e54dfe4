"""A stream of any length is one span at each of its ends."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omni_contract.wire.errors import OmniError
from omni_runtime.orchestrator import OrchestratorSettings, SessionRequest
from omni_runtime.tracing.settings import TracingSettings
from omni_runtime.tracing.span_files import SpanRecord, read_spans
from omni_runtime.tracing.start import start_tracing
from tests.support.stage_servers import fake_model_of, running_model

ITEMS = 100
PER_CHUNK = 7


@dataclass(frozen=True)
class Streamed:
    sent: SpanRecord
    got: SpanRecord


async def streamed(folder: Path, reader: dict[str, Any], **request: Any) -> Streamed:
    tracing = start_tracing(TracingSettings(directory=folder / "spans"), "all", "one")
    model = fake_model_of(
        {
            "thinker": {"fake": {"behavior": "burst", "steps": ITEMS}},
            "talker": {"fake": reader, "output": {"modality": "text"}},
        },
        [{"from": "thinker", "to": "talker", "streaming": {"chunkFrames": PER_CHUNK, "leftContextFrames": 2}}],
    )
    settings = OrchestratorSettings(frontend_id="frontend-1", tracing=tracing)
    async with running_model(model, folder, settings=settings) as running:
        with suppress(OmniError):
            await running.orchestrator.run(SessionRequest("r-1", {"prompt": "a fox"}, **request))
    tracing.close()
    spans = [span for span in read_spans(folder / "spans") if span.name.endswith("thinker->talker")]
    [sent, got] = sorted(spans, key=lambda span: span.name)
    return Streamed(sent, got)


async def test_its_spans_say_how_much_went_through_it(tmp_path: Path) -> None:
    spans = await streamed(tmp_path, {"behavior": "echo"})
    assert (spans.sent.name, spans.got.name) == ("send thinker->talker", "stream thinker->talker")
    assert spans.sent.attributes == spans.got.attributes
    said = spans.got.attributes
    assert (said["omni.items"], said["omni.chunks"]) == (ITEMS, -(-ITEMS // PER_CHUNK))
    assert said["omni.size_bytes"] > ITEMS and said["omni.connector"]
    assert not spans.sent.error and not spans.got.error


async def test_one_that_breaks_off_says_how_far_it_came(tmp_path: Path) -> None:
    spans = await streamed(tmp_path, {"behavior": "relay", "delaySeconds": 0.02}, timeout_s=0.3)
    assert spans.got.error == "broken off"
    assert 0 < spans.got.attributes["omni.items"] < ITEMS
