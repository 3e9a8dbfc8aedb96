"""How fast OTLP protobuf becomes a recording, against the plain Python loop over the parsed messages.

    python benchmarks/signals.py --spans 1000000 --repeats 3 --out benchmarks/results/signals.json

The loop parses each message with OTLP's own classes and reads every attribute of every span and resource in one
process, and keeps nothing. The import reads the same bytes from a file, interprets them and writes a recording.
Both run in fresh processes, in turn, so that they meet the same machine; ratios are of medians. Two sizes
(`--spans 1000000 4000000`) show whether memory is flat. What is imported looks like a RAG: of five spans of a
trace one is the root, one embeds, one retrieves four chunks with text, one calls an LLM with its prompt, one is
HTTP.
"""

import argparse
import json
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

BASE_NS = 1_767_225_600 * 10**9
SPANS_PER_MESSAGE = 500
SPANS_PER_TRACE = 5
CHUNKS = 4
WORDS = ("the", "cache", "keeps", "keys", "and", "values", "of", "tokens", "that", "a", "model", "has", "read")


def main() -> None:
    """Runs one measurement, or as a child one variant."""
    arguments = _arguments()
    if arguments.variant:
        print(json.dumps(VARIANTS[arguments.variant](Path(arguments.file))))
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for spans in arguments.spans for row in _measure(Path(folder), spans, arguments)]
    result = {"machine": _machine(), "rows": rows, "summary": _summary(rows)}
    if arguments.out:
        Path(arguments.out).parent.mkdir(parents=True, exist_ok=True)
        Path(arguments.out).write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    for line in result["summary"]:
        print(json.dumps(line))


def write(path: Path, spans: int, seed: int) -> None:
    """Writes export requests one after another, as a receiver would append them."""
    with path.open("wb") as file:
        for message in messages(spans, seed):
            file.write(message.SerializeToString())


def messages(spans: int, seed: int) -> Iterator[TracesData]:
    """Export requests of `SPANS_PER_MESSAGE` spans each."""
    rng = random.Random(seed)
    for first in range(0, spans, SPANS_PER_MESSAGE):
        data = TracesData()
        resource_spans = data.resource_spans.add()
        resource_spans.resource.attributes.extend(
            [_pair("service.name", "rag"), _pair("telemetry.sdk.language", "python")]
        )
        found = resource_spans.scope_spans.add()
        for number in range(first, min(first + SPANS_PER_MESSAGE, spans)):
            _fill(found.spans.add(), number, rng)
        yield data


def _fill(span: Any, number: int, rng: random.Random) -> None:
    trace, place = divmod(number, SPANS_PER_TRACE)
    span.trace_id = (trace + 1).to_bytes(16, "big")
    span.span_id = (number + 1).to_bytes(8, "big")
    if place:
        span.parent_span_id = (trace * SPANS_PER_TRACE + 1).to_bytes(8, "big")
    start = BASE_NS + trace * 2_000_000 + place * 1_000_000
    span.start_time_unix_nano, span.end_time_unix_nano = start, start + rng.randrange(10**6, 10**9)
    span.name, values = _KINDS[place](trace, rng)
    span.attributes.extend(_pair(name, value) for name, value in values.items())


def _root(trace: int, _rng: random.Random) -> tuple[str, dict[str, Any]]:
    return "ask", {
        "openinference.span.kind": "CHAIN",
        "input.value": f"What is number {trace}?",
        "session.id": f"s-{trace % 1000}",
        "tenant.id": f"t-{trace % 7}",
        "http.request.method": "POST",
        "http.response.status_code": 200,
    }


def _embed(_trace: int, rng: random.Random) -> tuple[str, dict[str, Any]]:
    return "embed", {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.request.model": "bge-small",
        "gen_ai.usage.input_tokens": rng.randrange(5, 40),
        "server.address": "10.0.0.7",
        "server.port": 8080,
    }


def _retrieve(_trace: int, rng: random.Random) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "gen_ai.retrieval.top_k": CHUNKS}
    for rank in range(CHUNKS):
        name = f"retrieval.documents.{rank}.document"
        values[f"{name}.id"] = f"doc-{rng.randrange(10_000)}"
        values[f"{name}.score"] = rng.random()
        values[f"{name}.content"] = " ".join(rng.choices(WORDS, k=90))
    return "retrieve", values


def _generate(_trace: int, rng: random.Random) -> tuple[str, dict[str, Any]]:
    return "chat", {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "vllm",
        "gen_ai.request.model": "qwen2.5-7b",
        "gen_ai.request.stream": True,
        "gen_ai.response.time_to_first_chunk": rng.random(),
        "gen_ai.usage.input_tokens": rng.randrange(500, 4000),
        "gen_ai.usage.output_tokens": rng.randrange(10, 400),
        "gen_ai.usage.cache_read.input_tokens": rng.randrange(500),
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "Answer from the context.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": " ".join(rng.choices(WORDS, k=200)),
    }


def _http(_trace: int, rng: random.Random) -> tuple[str, dict[str, Any]]:
    return "POST", {
        "http.request.method": "POST",
        "url.full": "http://vllm:8000/v1/chat/completions",
        "http.response.status_code": 200,
        "server.address": "vllm",
        "server.port": 8000,
        "http.request.body.size": rng.randrange(20_000),
    }


_KINDS = (_root, _embed, _retrieve, _generate, _http)


def _pair(name: str, value: Any) -> KeyValue:
    kind = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}[type(value)]
    return KeyValue(key=name, value=AnyValue(**{kind: value}))


def plain_loop(path: Path) -> dict[str, float]:
    """The messages parsed, and every attribute of them read into a mapping."""
    stream = path.read_bytes()
    started = time.perf_counter()
    spans = attributes = 0
    data = TracesData.FromString(stream)
    for resource_spans in data.resource_spans:
        {a.key: _value(a.value) for a in resource_spans.resource.attributes}
        for scope in resource_spans.scope_spans:
            for span in scope.spans:
                fields = (
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.name,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    span.status.code,
                    len(span.events),
                )
                found = {a.key: _value(a.value) for a in span.attributes}
                spans += bool(fields)
                attributes += len(found)
    return _row(started, spans)


def bare_parse(path: Path) -> dict[str, float]:
    """The messages parsed and nothing read: what any reader in Python pays at least."""
    stream = path.read_bytes()
    started = time.perf_counter()
    TracesData.FromString(stream)
    return _row(started, 0)


def import_file(path: Path) -> dict[str, float]:
    """The file imported into a recording."""
    from ragclinic.signals.importing import import_paths

    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        report = import_paths([path], Path(folder) / "rec")
        return _row(started, report.rows["spans"])


VARIANTS = {"plain loop": plain_loop, "bare parse": bare_parse, "import": import_file}


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))


def _row(started: float, spans: int) -> dict[str, float]:
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": time.perf_counter() - started, "spans": spans, "peak_mb": round(peak_mb, 1)}


def _measure(folder: Path, spans: int, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    path = folder / f"{spans}.pb"
    write(path, spans, arguments.seed)
    for repeat in range(arguments.repeats + 1):
        for variant in VARIANTS:
            command = [sys.executable, __file__, "--variant", variant, "--file", str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            row = json.loads(done.stdout)
            yield {"variant": variant, "of": spans, "repeat": repeat, "warmup": repeat == 0, **row}
    path.unlink()


def _summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians over the repeats that were no warm-up, and each variant's ratio to the plain loop."""
    found = []
    for spans in sorted({row["of"] for row in rows}):
        timed = [row for row in rows if row["of"] == spans and not row["warmup"]]
        median_s = {v: statistics.median(r["seconds"] for r in timed if r["variant"] == v) for v in VARIANTS}
        for variant, seconds in median_s.items():
            mine = [r for r in timed if r["variant"] == variant]
            found.append(
                {
                    "spans": spans,
                    "variant": variant,
                    "seconds": round(seconds, 3),
                    "low": round(min(r["seconds"] for r in mine), 3),
                    "high": round(max(r["seconds"] for r in mine), 3),
                    "of_plain_loop": round(seconds / median_s["plain loop"], 3),
                    "spans_per_s": round(spans / seconds),
                    "peak_mb": max(r["peak_mb"] for r in mine),
                }
            )
    return found


def _machine() -> dict[str, Any]:
    from importlib.metadata import version

    names = ("pyarrow", "duckdb", "protobuf", "ptars")
    return {
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spans", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", help="where raw rows and medians go, as JSON")
    parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
