"""Tracing by the OpenTelemetry SDK: spans to a collector, to a folder, or both."""

from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from omni_runtime.tracing.file_exporter import SpanFileExporter
from omni_runtime.tracing.settings import TracingSettings
from omni_runtime.tracing.spans import NOTHING, Attributes, Span, SpanKind

KINDS = {"internal": trace.SpanKind.INTERNAL, "server": trace.SpanKind.SERVER, "client": trace.SpanKind.CLIENT}
PROPAGATOR = TraceContextTextMapPropagator()


class RecordedSpan:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> str:
        carrier: dict[str, str] = {}
        PROPAGATOR.inject(carrier, trace.set_span_in_context(self._span))
        return carrier.get("traceparent", "")

    def end(self, error: str = "", attributes: Attributes = NOTHING) -> None:
        if not self._span.is_recording():
            return
        self._span.set_attributes(attributes)
        if error:
            self._span.set_status(trace.StatusCode.ERROR, error)
        self._span.end()


class Recording:
    """Traces of one process. `service` is the kind of process, `instance` this one of them."""

    def __init__(self, settings: TracingSettings, service: str, instance: str, resource: Attributes = NOTHING) -> None:
        names: dict[str, Any] = {"service.name": service, "service.instance.id": instance, **resource}
        sampler = ParentBased(TraceIdRatioBased(settings.ratio))
        self._provider = TracerProvider(sampler=sampler, resource=Resource.create(names), shutdown_on_exit=False)
        if settings.endpoint is not None:
            self._provider.add_span_processor(BatchSpanProcessor(_collector(settings.endpoint)))
        if settings.directory is not None:
            exporter = SpanFileExporter(settings.directory, service, instance)
            self._provider.add_span_processor(SimpleSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("omni_runtime")

    def start(self, name: str, parent: str = "", attributes: Attributes = NOTHING, kind: SpanKind = "internal") -> Span:
        context = PROPAGATOR.extract({"traceparent": parent} if parent else {})
        return RecordedSpan(self._tracer.start_span(name, context, KINDS[kind], attributes))

    def close(self) -> None:
        self._provider.shutdown()


def _collector(endpoint: str) -> Any:
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=endpoint)
