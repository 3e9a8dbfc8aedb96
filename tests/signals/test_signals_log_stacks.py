import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.signals.readers import log_ragflow, log_tgi
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Sample, Span
from ragclinic.signals.requests import build_requests
from ragclinic.signals.seen import Request

DATA = Path(__file__).parents[1] / "data"
AT_16_20 = 1_796_142_000_000_000_000


def make_read(reader: Reader, data: bytes) -> tuple[tuple[Request, ...], list[Sample], ReadLog]:
    log = ReadLog()
    found = list(reader.read(io.BytesIO(data), Origin("s", modified_ns=AT_16_20), log, ReadOptions()))
    spans = [r for r in found if isinstance(r, Span)]
    return build_requests(spans), [r for r in found if isinstance(r, Sample)], log


def test_tgi_lines_become_requests_with_their_queue_in_text_and_json() -> None:
    requests, _, log = make_read(log_tgi.READER, (DATA / "tgi-log/router.log").read_bytes())
    assert [r.total_ms for r in requests] == pytest.approx([735.200735, 5500, 951])
    assert [r.output_tokens for r in requests] == [20, 200, 100]
    assert [r.stage_ms("queue") for r in requests] == pytest.approx([0.073, 2100, 50], abs=0.01)
    assert [s.name for s in requests[1].stages] == ["validation", "queue", "generate"]
    assert requests[0].arrival_ns == AT_16_20 + 3_478_010_000 - 735_200_735
    assert {b.kind: b.count for b in log.bad} == {"broken line": 2}
    assert (log.kept, log.skipped) == (3, 1)
    assert "first token" in log.missing


def test_an_out_of_memory_error_of_the_shard_is_told() -> None:
    line = b"2026-12-01T16:20:00Z ERROR shard: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    _, samples, _ = make_read(log_tgi.READER, line)
    assert [(s.name, s.time_ns, s.value) for s in samples] == [("torch.cuda.oom", AT_16_20, 2 * 1024**3)]


def test_ragflow_steps_run_one_after_another_and_refinement_is_a_call() -> None:
    requests, _, log = make_read(log_ragflow.READER, (DATA / "ragflow-footer/footer.md").read_bytes())
    newer, older = requests
    assert newer.total_ms == pytest.approx(214319)
    assert [s.name for s in newer.stages] == ["check", "bind", "generate", "search", "generate"]
    assert newer.stage_ms("search") == pytest.approx(85402.5)
    assert newer.stage_ms("generate") == pytest.approx(120429.9 + 8429.1, abs=1)
    assert newer.output_tokens == 512
    assert older.total_ms == pytest.approx(184500)
    assert log.bad_rows == 0


def test_a_step_without_a_number_is_no_step_and_a_week_is_too_long() -> None:
    _, _, log = make_read(log_ragflow.READER, b"  - Retrieval: 99999999999.0ms\n  - Retrieval: fast\n")
    assert (log.bad_rows, log.skipped) == (1, 1)


@given(st.text(max_size=80), st.integers(0, 3000))
def test_any_text_among_the_lines_is_survived(data: str, place: int) -> None:
    for reader, name in ((log_tgi.READER, "tgi-log/router.log"), (log_ragflow.READER, "ragflow-footer/footer.md")):
        text = (DATA / name).read_bytes()
        text = text[: place % len(text)] + data.encode("utf-8", "replace") + text[place % len(text) :]
        reader.sniff(text)
        requests, _, log = make_read(reader, text)
        assert log.rows == sum(1 for row in text.split(b"\n") if row.decode("utf-8", "replace").strip())
        assert all(r.total_ms >= 0 for r in requests)
