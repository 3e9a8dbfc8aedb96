"""A request's trace as OpenTelemetry spans, in the GenAI and the OpenInference names both."""

from collections.abc import Mapping, Sequence

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context

from ragclinic.engine.trace import RequestTrace, StageRun
from ragclinic.signals.recording import RecordingWriter
from ragclinic.signals.records import AttributeValue, Span
from ragclinic.signals.stages import STAGE

NS_PER_S = 1e9
OPERATION = {"embed": "embeddings", "search": "retrieval", "generate": "chat"}
KIND = {"embed": "EMBEDDING", "search": "RETRIEVER", "generate": "LLM"}
PARTS_OF_GENERATION = ("queue", "prefill", "decode")


class RecordingExporter(SpanExporter):
    """Hands finished spans to a recording."""

    def __init__(self, writer: RecordingWriter) -> None:
        self._writer = writer

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Adds the spans to the recording."""
        self._writer.add(*(_record(span) for span in spans))
        return SpanExportResult.SUCCESS


def tracer(writer: RecordingWriter, service: str = "ragclinic") -> Tracer:
    """A tracer whose spans end in the recording; it touches no global provider."""
    provider = TracerProvider(resource=Resource({"service.name": service}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(RecordingExporter(writer)))
    return provider.get_tracer("ragclinic")


def emit(tracer: Tracer, trace: RequestTrace, error: str | None = None) -> str:
    """Records the request and returns its trace id, 32 hexadecimal digits."""
    first_s = ((trace.first_byte_ns or trace.end_ns) - trace.start_ns) / NS_PER_S
    root = tracer.start_span(
        "rag.request",
        kind=SpanKind.SERVER,
        start_time=trace.start_ns,
        attributes={
            "openinference.span.kind": "CHAIN",
            "ragclinic.time_to_first_byte": first_s,
            **trace.attributes,
        },
    )
    if error is not None:
        root.set_status(Status(StatusCode.ERROR, error))
    under_root = set_span_in_context(root)
    generate = next((s for s in trace.stages if s.name == "generate"), None)
    holder = under_root
    if generate is not None:
        span = tracer.start_span(
            "chat", under_root, SpanKind.CLIENT, _attributes(generate), start_time=generate.start_ns
        )
        holder = set_span_in_context(span)
        span.end(generate.end_ns)
    for stage in trace.stages:
        if stage.name != "generate":
            context = holder if stage.name in PARTS_OF_GENERATION else under_root
            tracer.start_span(
                OPERATION.get(stage.name, stage.name),
                context,
                attributes=_attributes(stage),
                start_time=stage.start_ns,
            ).end(stage.end_ns)
    root.end(trace.end_ns)
    return f"{root.get_span_context().trace_id:032x}"


def _attributes(stage: StageRun) -> dict[str, AttributeValue]:
    named: dict[str, AttributeValue] = {STAGE: stage.name}
    if stage.name in OPERATION:
        named["gen_ai.operation.name"] = OPERATION[stage.name]
        named["openinference.span.kind"] = KIND[stage.name]
    return named | stage.attributes


def _record(span: ReadableSpan) -> Span:
    context = span.get_span_context()
    failed = span.status.status_code is StatusCode.ERROR
    attributes: Mapping[str, object] = span.attributes or {}
    return Span(
        trace_id=f"{context.trace_id:032x}" if context else "",
        span_id=f"{context.span_id:016x}" if context else "",
        parent_id=f"{span.parent.span_id:016x}" if span.parent else None,
        name=span.name,
        start_ns=span.start_time or 0,
        end_ns=span.end_time or 0,
        service=str(span.resource.attributes.get("service.name", "")),
        error=(span.status.description or "error") if failed else None,
        attributes={k: v for k, v in attributes.items() if isinstance(v, str | int | float | bool)},
    )
