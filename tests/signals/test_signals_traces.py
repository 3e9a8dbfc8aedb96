"""Spans of every system and generation of names become requests with stages, chunks, prompts and tokens."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from ragclinic.signals.importing import import_paths
from ragclinic.signals.load import load
from ragclinic.signals.readers import langfuse, langsmith, otlp_json, otlp_proto, zipkin
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions, Rows
from ragclinic.signals.records import Sample
from ragclinic.signals.seen import Request

DATA = Path(__file__).parents[1] / "data"
T0 = 1_796_142_000_000_000_000
MS = 1_000_000
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def requests_of(*paths: Path, into: Path) -> tuple[Request, ...]:
    """The requests in some files."""
    import_paths(paths, into / "rec")
    return load(into / "rec").requests


def otlp(*spans: dict[str, Any], service: str = "app") -> bytes:
    """Spans as an OTLP JSON document."""
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}).encode()


def span(start_ms: float = 0, end_ms: float = 1000, **more: Any) -> dict[str, Any]:
    """An OTLP JSON span; `attributes` is a plain mapping of typed values."""
    attributes = [{"key": k, "value": v} for k, v in more.pop("attributes", {}).items()]
    times = {"startTimeUnixNano": str(T0 + int(start_ms * MS)), "endTimeUnixNano": str(T0 + int(end_ms * MS))}
    return {"traceId": TRACE, "spanId": SPAN, "name": "s", **times, "attributes": attributes, **more}


def read(reader: Reader, data: bytes, options: ReadOptions | None = None) -> tuple[dict[str, pa.Table], ReadLog]:
    """The tables a reader makes of some bytes, by name, and the account."""
    log = ReadLog()
    tables: dict[str, list[pa.Table]] = {}
    for found in reader.read(io.BytesIO(data), Origin("f"), log, options or ReadOptions()):
        assert isinstance(found, Rows)
        tables.setdefault(found.table, []).append(found.data)
    return {name: pa.concat_tables(parts) for name, parts in tables.items()}, log


def attributes(tables: dict[str, pa.Table]) -> dict[str, Any]:
    """The attributes of the first span."""
    found: dict[str, Any] = json.loads(tables["spans"].column("attributes")[0].as_py())
    return found


def test_openinference_tells_stages_chunks_prompt_and_tokens(tmp_path: Path) -> None:
    first = requests_of(DATA / "otlp-json" / "openinference.json", into=tmp_path)[0]
    assert [(s.name, s.duration_ms) for s in first.stages] == [
        ("search", 5.0),
        ("embed", 40.0),
        ("search", 75.0),
        ("rerank", 180.0),
        ("prefill", 800.0),
        ("decode", 1230.0),
    ]
    assert [(c.rank, c.chunk_id, c.doc, c.start, c.score) for c in first.chunks] == [
        (0, "handbook-0", "handbook.md", 0, 0.95),
        (1, "handbook-1", "handbook.md", 120, 0.55),
    ]
    assert (first.prompt_tokens, first.cached_tokens, first.output_tokens) == (96, 16, 12)
    assert (first.tenant, first.session, first.question) == ("team-a", "s-7", "Why does a request get preempted?")
    roles = [(p.role, p.rank) for p in first.parts]
    assert roles == [
        ("system", None),
        ("template", None),
        ("context", 0),
        ("context", 1),
        ("template", None),
        ("question", None),
        ("template", None),
    ]
    assert all(p.token_keys is not None and p.tokens == len(p.token_keys) for p in first.parts)


def test_the_two_prompts_of_a_clock_in_the_system_message_part_at_its_token(tmp_path: Path) -> None:
    one, two = requests_of(DATA / "otlp-json" / "openinference.json", into=tmp_path)
    first, second = (one.parts[0].token_keys or (), two.parts[0].token_keys or ())
    shared = next(i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
    assert (shared, len(first)) == (16, 18)


def test_genai_names_and_the_server_span_of_vllm_make_one_waterfall(tmp_path: Path) -> None:
    found = {r.id[-1]: r for r in requests_of(DATA / "otlp-json" / "collector.jsonl", into=tmp_path)}
    new, old = found["1"], found["2"]
    assert [(s.name, s.start_ms, s.end_ms) for s in new.stages] == [
        ("search", 10.0, 90.0),
        ("queue", 190.0, 790.0),
        ("prefill", 790.0, 1390.0),
        ("decode", 1390.0, 2940.0),
    ]
    assert (new.prompt_tokens, new.cached_tokens, new.output_tokens, new.streamed) == (120, 32, 80, True)
    assert (new.tenant, new.session, [p.role for p in new.parts]) == ("acme", "c-1", ["system", "question"])
    assert (old.tenant, old.error, old.prompt_tokens) == ("acme", "TimeoutError: no answer in 800 ms", 50)


def test_openllmetry_old_and_new_names_are_understood(tmp_path: Path) -> None:
    found = {r.id[-1]: r for r in requests_of(DATA / "otlp-json" / "openllmetry.json", into=tmp_path)}
    new, old = found["1"], found["2"]
    assert [s.name for s in new.stages] == ["search", "prefill", "decode"]
    assert [(c.chunk_id, c.doc, c.score) for c in new.chunks] == [
        ("handbook-2", "handbook.md", None),
        ("handbook-0", None, None),
    ]
    assert (new.question, new.tenant) == ("What does a prefix cache share?", "team-b")
    assert [(s.name, s.duration_ms) for s in old.stages] == [
        ("embed", 40.0),
        ("prefill", 500.0),
        ("decode", 880.0),
    ]
    assert [(p.role, p.text) for p in old.parts] == [
        ("system", "Answer briefly."),
        ("question", "Why does a request get preempted?"),
    ]


@pytest.mark.parametrize("name", ["jaeger-json/ui-download.json", "zipkin-json/api-v2.json"])
def test_jaeger_and_zipkin_tell_what_the_same_spans_tell_in_otlp(name: str, tmp_path: Path) -> None:
    same = {r.id: r for r in requests_of(DATA / "otlp-json" / "openinference.json", into=tmp_path / "a")}
    other = {r.id: r for r in requests_of(DATA / name, into=tmp_path / "b")}
    second = f"{2:032x}"
    assert other[second] == same[second]


def test_protobuf_tells_what_json_tells(tmp_path: Path) -> None:
    same = requests_of(DATA / "otlp-json" / "openinference.json", into=tmp_path / "a")
    assert requests_of(DATA / "otlp-protobuf" / "openinference.pb", into=tmp_path / "b") == same


@pytest.mark.parametrize("name", ["collector.proto", "collector-zstd.proto"])
def test_the_collector_s_sized_messages_tell_what_its_json_lines_tell(name: str, tmp_path: Path) -> None:
    same = requests_of(DATA / "otlp-json" / "collector.jsonl", into=tmp_path / "a")
    assert requests_of(DATA / "otlp-protobuf" / name, into=tmp_path / "b") == same


def test_a_shared_zipkin_span_of_a_server_becomes_the_child_of_its_client(tmp_path: Path) -> None:
    first = requests_of(DATA / "zipkin-json" / "api-v2.json", into=tmp_path)[0]
    assert [s.name for s in first.stages][-3:] == ["queue", "prefill", "decode"]
    assert first.prompt_tokens == 96


def test_langfuse_counts_cached_tokens_into_the_prompt_and_reads_every_export(tmp_path: Path) -> None:
    one, failed, two = _langfuse(tmp_path)
    assert (one.prompt_tokens, one.cached_tokens, one.output_tokens) == (96, 16, 12)
    assert (two.prompt_tokens, [s.name for s in two.stages]) == (96, ["search", "prefill", "decode"])
    assert (failed.error, failed.prompt_tokens, failed.output_tokens) == ("rate limited", 40, 7)
    assert [c.doc for c in one.chunks] == ["handbook.md", "handbook.md"]


def _langfuse(into: Path) -> tuple[Request, Request, Request]:
    found = requests_of(*sorted((DATA / "langfuse-json").glob("*.json*")), into=into)
    by_id = {r.id[-1]: r for r in found}
    return by_id["0"], by_id["9"], by_id["1"]


def test_langsmith_lists_and_trees_tell_the_same(tmp_path: Path) -> None:
    lines = requests_of(DATA / "langsmith-runs" / "runs.jsonl", into=tmp_path / "a")[0]
    tree = requests_of(DATA / "langsmith-runs" / "query-page.json", into=tmp_path / "b")[0]
    assert (lines.stages, lines.prompt_tokens, lines.cached_tokens) == (tree.stages, 71, 16)
    assert [(c.doc, c.start, c.end) for c in lines.chunks] == [("handbook.md", 240, 316), ("handbook.md", 0, 122)]
    assert [p.role for p in lines.parts] == ["system", "context", "question"]


BAD_SPANS = {
    "negative duration": (span(10, 5), r"span ends 0.005 s before it starts; expected end >= start"),
    "no start time": (span() | {"startTimeUnixNano": "0"}, "no start time; expected nanoseconds since 1970"),
    "span not ended": (span() | {"endTimeUnixNano": "0"}, "no end time; expected one"),
    "no trace id": (span() | {"traceId": "0" * 32}, "no trace id; expected hexadecimal digits"),
    "no span id": (span() | {"spanId": ""}, "no span id; expected hexadecimal digits"),
    "longer than a day": (span(0, 1e9), "span lasts 1000000 s; expected less than a day; a clock was set"),
    "unreadable span": (
        span() | {"startTimeUnixNano": {}},
        "startTimeUnixNano is an object; expected a whole number",
    ),
}


# A time that is an object cannot be written in protobuf.
BAD_ROUTES = [(kind, "json") for kind in BAD_SPANS] + [
    (k, "protobuf") for k in BAD_SPANS if k != "unreadable span"
]


@pytest.mark.parametrize(("kind", "route"), BAD_ROUTES)
def test_a_bad_span_is_counted_by_its_kind_and_the_others_are_kept(kind: str, route: str) -> None:
    bad, says = BAD_SPANS[kind]
    good = span(spanId="00f067aa0ba902b7")
    data, reader = otlp(bad, good, bad), otlp_json.READER
    if route == "protobuf":
        data, reader = protobuf(data), otlp_proto.READER
    tables, log = read(reader, data)
    assert (log.kept, [(b.kind, b.count) for b in log.bad]) == (1, [(kind, 2)])
    assert says in log.bad[0].found
    assert tables["spans"].column("span_id").to_pylist() == ["00f067aa0ba902b7"]


def protobuf(document: bytes) -> bytes:
    """An OTLP JSON document in protobuf."""
    told = json.loads(document)
    for one in (s for r in told["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]):
        for key in ("traceId", "spanId", "parentSpanId"):
            if key in one:
                one[key] = base64.b64encode(bytes.fromhex(one[key])).decode()
    return bytes(ParseDict(told, TracesData()).SerializeToString())


VALUES: dict[str, tuple[dict[str, Any], Any]] = {
    "text": ({"stringValue": 'a "b" \\ \n 中文'}, 'a "b" \\ \n 中文'),
    "integer": ({"intValue": "-7"}, -7),
    "large": ({"intValue": str(2**62)}, 2**62),
    "fraction": ({"doubleValue": 0.1}, 0.1),
    "whole fraction": ({"doubleValue": 2.0}, 2.0),
    "nan": ({"doubleValue": "NaN"}, "nan"),
    "flag": ({"boolValue": True}, True),
    "list": ({"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}]}}, '["a", 1]'),
    "map": ({"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": False}}]}}, '{"k": false}'),
    "bytes": ({"bytesValue": "AQI="}, "AQI="),
}


@pytest.mark.parametrize("route", ["json", "protobuf"])
@pytest.mark.parametrize("kind", VALUES)
def test_every_type_of_value_reads_alike_in_json_and_protobuf(kind: str, route: str) -> None:
    value, expected = VALUES[kind]
    data = otlp(span(attributes={"x": value, "absent": {}}))
    tables, _ = read(otlp_json.READER, data) if route == "json" else read(otlp_proto.READER, protobuf(data))
    assert attributes(tables) == {"x": expected}
    assert type(attributes(tables)["x"]) is type(expected)


def test_identifiers_in_base64_and_old_scope_names_are_understood() -> None:
    told = span() | {"traceId": "CvdlGRbNQ92ESOshHIAxnA==", "spanId": "t61rcWkgMzE="}
    old = {"resourceSpans": [{"instrumentationLibrarySpans": [{"spans": [told]}]}]}
    tables, _ = read(otlp_json.READER, json.dumps(old).encode())
    found = tables["spans"].to_pylist()[0]
    assert (found["trace_id"], found["span_id"], found["service"]) == (TRACE, SPAN, "")


def test_the_tenant_is_taken_from_the_attribute_the_user_names() -> None:
    data = otlp(span(attributes={"app.customer": {"intValue": "42"}, "user.id": {"stringValue": "u"}}))
    tables, _ = read(otlp_json.READER, data, ReadOptions(tenant="app.customer"))
    assert attributes(tables) == {"app.customer": 42, "tenant.id": "42", "user.id": "u"}


def test_vectors_and_what_is_a_chunk_or_a_part_leave_the_attributes() -> None:
    flat = {
        "embedding.embeddings.0.embedding.vector": {"doubleValue": 0.5},
        "retrieval.documents.0.document.content": {"stringValue": "text of a chunk"},
        "llm.input_messages.0.message.content": {"stringValue": "a prompt"},
        "kept": {"intValue": "1"},
    }
    tables, _ = read(otlp_json.READER, otlp(span(attributes=flat)))
    assert attributes(tables) == {"kept": 1}
    assert tables["chunks"].column("text").to_pylist() == ["text of a chunk"]
    assert tables["parts"].column("text").to_pylist() == ["a prompt"]


def test_an_input_says_what_it_lacks_and_the_line_that_turns_it_on() -> None:
    _, log = read(otlp_json.READER, otlp(span()))
    assert set(log.missing) == {
        "stages",
        "chunks",
        "prompt tokens",
        "cached tokens",
        "time to first token",
        "prompt parts",
        "tenant",
    }
    assert (
        log.missing["tenant"] == "set the attribute tenant.id on the root span, or name yours with --tenant NAME"
    )


def test_metrics_of_otlp_become_samples_deltas_add_up_and_buckets_are_cumulative() -> None:
    log = ReadLog()
    data = (DATA / "otlp-json" / "collector.jsonl").read_bytes()
    found = [r for r in otlp_json.read(io.BytesIO(data), Origin("f"), log, ReadOptions()) if isinstance(r, Sample)]
    named = {name: [s for s in found if s.name == name] for name in {s.name for s in found}}
    assert [s.value for s in named["vllm:num_preemptions_total"]] == [2.0, 4.0]
    assert named["vllm:kv_cache_usage_perc"][0].labels == {"engine": "0", "job": "rag-api", "instance": "i-1"}
    buckets = [(s.labels["le"], s.value) for s in named["gen_ai.server.time_to_first_token_bucket"]]
    assert buckets == [("0.5", 0.0), ("1", 1.0), ("2.5", 3.0), ("+Inf", 3.0)]
    exponential = [(s.labels["le"], s.value) for s in named["rag.step.duration_bucket"]]
    assert exponential == [("1", 1.0), ("2", 2.0), ("4", 4.0), ("+Inf", 4.0)]


BAD_POINTS: dict[str, dict[str, Any]] = {
    "value not finite": {"gauge": {"dataPoints": [{"timeUnixNano": "5", "asDouble": "NaN"}]}},
    "unreadable data point": {"gauge": {"dataPoints": [{"timeUnixNano": "-5", "asDouble": 1}]}},
    "unreadable metric": {"strange": {}},
}


@pytest.mark.parametrize("kind", BAD_POINTS)
def test_a_bad_metric_is_counted_by_its_kind(kind: str) -> None:
    document = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m", **BAD_POINTS[kind]}]}]}]}
    _, log = read(otlp_json.READER, json.dumps(document).encode())
    assert [(b.kind, b.count) for b in log.bad] == [(kind, 1)]


def test_a_message_too_large_for_memory_is_cut_between_its_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    from ragclinic.signals.readers import otlp_frames

    many = [span(spanId=f"{i:016x}") for i in range(1, 200)]
    data = protobuf(otlp(*many, service="one"))
    monkeypatch.setattr(otlp_frames, "PIECE_BYTES", 1000)
    tables, log = read(otlp_proto.READER, data)
    assert (log.kept, log.bad_rows) == (199, 0)
    assert tables["spans"].column("span_id").to_pylist() == [s["spanId"] for s in many]
    assert set(tables["spans"].column("service").to_pylist()) == {"one"}


def test_a_damaged_message_costs_itself_alone() -> None:
    good = protobuf(otlp(span()))
    broken = bytearray(protobuf(otlp(span(name="xxxxxxxx"))))
    broken[broken.index(b"xxxxxxxx")] = 0xFF  # no UTF-8 any more
    sized = b"".join(len(m).to_bytes(4, "big") + m for m in (good, bytes(broken), good))
    tables, log = read(otlp_proto.READER, sized)
    assert (log.kept, [(b.kind, b.count) for b in log.bad]) == (2, [("unreadable message", 1)])
    assert len(tables["spans"]) == 2


def test_langfuse_scores_and_bare_traces_are_passed_over() -> None:
    rows = [
        {"id": "t", "timestamp": "2026-12-01T15:00:00Z", "name": "trace", "input": "q"},
        {"id": "s", "timestamp": "2026-12-01T15:00:00Z", "value": 1},
    ]
    _, log = read(langfuse.READER, json.dumps(rows).encode())
    assert (log.kept, log.skipped, log.bad_rows) == (0, 2, 0)


def test_an_observation_or_run_without_a_time_is_counted() -> None:
    _, log = read(langfuse.READER, b'[{"id": "o", "traceId": "t", "type": "SPAN"}]')
    assert log.bad[0].found == "startTime is nothing; expected an ISO time"
    _, log = read(langsmith.READER, b'{"id": "r", "run_type": "llm", "start_time": 5}')
    assert log.bad[0].found == "start_time is a number; expected an ISO time"


def test_numbers_that_zipkin_writes_as_texts_are_numbers_again_and_ids_stay_texts() -> None:
    tags = {
        "gen_ai.usage.input_tokens": "12",
        "gen_ai.latency.e2e": "0.5",
        "session.id": "77",
        "gen_ai.request.stream": "true",
    }
    row = {"traceId": TRACE, "id": SPAN, "timestamp": T0 // 1000, "duration": 5, "tags": tags}
    tables, _ = read(zipkin.READER, json.dumps([row]).encode())
    assert attributes(tables) == {
        "gen_ai.latency.e2e": 0.5,
        "gen_ai.request.stream": True,
        "gen_ai.usage.input_tokens": 12,
        "session.id": "77",
    }
