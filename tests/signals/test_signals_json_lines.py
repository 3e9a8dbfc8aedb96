import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.errors import BadInput
from ragclinic.signals.readers import json_lines
from ragclinic.signals.readers.reader import Origin, ReadLog, ReadOptions
from ragclinic.signals.records import Span
from ragclinic.signals.requests import build_requests
from ragclinic.signals.seen import Request

DATA = Path(__file__).parents[1] / "data/json-lines"
AT_16_20 = 1_796_142_000_000_000_000


def make_read(data: bytes, **options: Any) -> tuple[tuple[Request, ...], ReadLog]:
    log = ReadLog()
    read = json_lines.READER.read(io.BytesIO(data), Origin("j", modified_ns=7), log, ReadOptions(**options))
    return build_requests([r for r in read if isinstance(r, Span)]), log


def make_lines(*lines: dict[str, object]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_lines_of_one_request_id_become_its_stages() -> None:
    requests, _ = make_read((DATA / "app.jsonl").read_bytes())
    first = requests[0]
    assert [s.name for s in first.stages] == ["embed", "search", "generate"]
    assert first.stage_ms("search") == pytest.approx(690, abs=1)
    assert (first.total_ms, first.first_byte_ms, first.tenant) == (7870, 2900, "acme")
    assert (first.prompt_tokens, first.cached_tokens, first.output_tokens) == (3120, 64, 210)
    assert first.arrival_ns == AT_16_20 + 340_000_000


def test_response_bodies_of_servers_are_requests() -> None:
    requests, log = make_read((DATA / "app.jsonl").read_bytes())
    ollama, llama = requests[2], requests[3]
    assert [(s.name, round(s.duration_ms)) for s in ollama.stages] == [
        ("load", 2000),
        ("prefill", 3000),
        ("decode", 900),
    ]
    assert ollama.total_ms == 6000
    assert (llama.total_ms, llama.cached_tokens, llama.arrival_ns) == (1000, 100, AT_16_20 + 30 * 10**9)
    assert (log.kept, log.skipped) == (7, 1)
    assert {b.kind: b.count for b in log.bad} == {"broken line": 1, "unreadable JSON": 1}


def test_a_text_with_a_unit_is_a_duration_and_a_bare_number_is_not() -> None:
    requests, log = make_read(make_lines({"ts": 1, "latency": "1.5s"}, {"ts": 1, "latency": 1.5}))
    assert [r.total_ms for r in requests] == [1500]
    assert log.skipped == 1


def test_the_users_map_says_what_a_field_is() -> None:
    line = make_lines({"when": "2026-12-01T16:20:00Z", "elapsed": 2, "who": {"org": "acme"}, "rid": "x"})
    fields = {"elapsed": "duration_s", "when": "start_time", "who.org": "tenant", "rid": "trace_id"}
    requests, _ = make_read(line, fields=fields)
    assert (requests[0].total_ms, requests[0].arrival_ns, requests[0].tenant) == (2000, AT_16_20, "acme")
    requests, _ = make_read(line, fields={"elapsed": "duration_s"}, tenant="who.org")
    assert requests[0].tenant == "acme"


def test_an_unknown_field_of_ours_names_the_nearest() -> None:
    with pytest.raises(BadInput, match="did you mean duration_s"):
        make_read(b"{}", fields={"elapsed": "duraton_s"})


def test_a_log_without_durations_says_what_to_do() -> None:
    _, log = make_read(make_lines({"ts": 1, "elapsed": 3}))
    assert any("--fields elapsed=duration_s" in note for note in log.notes)


def test_a_w3c_trace_id_stays_as_it_is() -> None:
    id_ = "0af7651916cd43dd8448eb211c80319c"
    requests, _ = make_read(make_lines({"ts": 1, "trace_id": id_, "duration_ms": 1}))
    assert requests[0].id == id_


@pytest.mark.parametrize("value", [-1, 1e18, "NaN", "soon", [], True])
def test_a_duration_that_is_none_makes_the_line_bad(value: object) -> None:
    requests, log = make_read(make_lines({"ts": 1, "duration_ms": value}))
    assert (requests, log.bad_rows) == ((), 1)


@pytest.mark.parametrize("value", ["yesterday", {"a": 1}, 1e300])
def test_a_time_that_is_none_makes_the_line_bad(value: object) -> None:
    requests, log = make_read(make_lines({"timestamp": value, "duration_ms": 5}))
    assert (requests, log.bad_rows) == ((), 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=6), lambda inner: st.lists(inner, max_size=2)
)
KEYS = st.sampled_from(
    ["timestamp", "duration_ms", "stage", "request_id", "usage", "latency", "created", "ttft_ms", "x"]
)


@given(st.lists(st.dictionaries(KEYS, JSON, max_size=5), max_size=4))
def test_any_objects_are_accounted_for(objects: list[dict[str, Any]]) -> None:
    data = make_lines(*objects)
    json_lines.sniff(data)
    if objects:
        requests, log = make_read(data)
        assert log.rows == len(objects)
        assert all(r.total_ms >= 0 for r in requests)
