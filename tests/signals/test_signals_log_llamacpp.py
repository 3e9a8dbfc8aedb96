import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.signals.readers import log_llamacpp
from ragclinic.signals.readers.reader import Origin, ReadLog, ReadOptions
from ragclinic.signals.records import Sample, Span
from ragclinic.signals.requests import build_requests
from ragclinic.signals.seen import Request

DATA = Path(__file__).parents[1] / "data/llamacpp-log"
WRITTEN_NS = 1_796_142_000_000_000_000
MIB = 1024.0**2


def make_read(data: bytes) -> tuple[list[Sample], tuple[Request, ...], ReadLog]:
    log = ReadLog()
    found = list(
        log_llamacpp.READER.read(io.BytesIO(data), Origin("l", modified_ns=WRITTEN_NS), log, ReadOptions())
    )
    requests = build_requests([r for r in found if isinstance(r, Span)])
    return [r for r in found if isinstance(r, Sample)], requests, log


def test_each_request_ends_in_its_stages_and_tokens() -> None:
    _, requests, log = make_read((DATA / "own.log").read_bytes())
    assert [r.prompt_tokens for r in requests] == [87, 268, 496, 1092]
    assert [r.cached_tokens for r in requests] == [0, 10, 12, 12]
    assert [r.output_tokens for r in requests] == [48] * 4
    assert [r.window_tokens for r in requests] == [8192] * 4
    assert [s.name for s in requests[3].stages] == ["prefill", "decode"]
    assert requests[3].stage_ms("prefill") == pytest.approx(11297.38)
    assert requests[3].stage_ms("decode") == pytest.approx(1554.62)
    assert requests[0].arrival_ns == WRITTEN_NS + 3_323_379_000
    assert log.bad_rows == 0
    assert log.rows == 41


def test_the_verbose_log_prints_prompt_and_cache_itself() -> None:
    samples, requests, log = make_read((DATA / "verbose.log").read_bytes())
    assert (requests[0].prompt_tokens, requests[0].cached_tokens, requests[0].window_tokens) == (1031, 1000, 2048)
    values = {s.name: s.value for s in samples}
    assert values["llamacpp.log.kv_buffer_bytes"] == 45 * MIB
    assert (values["llamacpp.log.layers_offloaded"], values["llamacpp.log.layers_total"]) == (12.0, 31.0)
    assert values["llamacpp.log.kv_cells"] == 2048.0
    assert values["llamacpp.log.context_exceeded"] == 5065.0
    assert any("still running" in note for note in log.notes)


def test_a_cancelled_request_is_an_error_with_the_time_it_took() -> None:
    _, requests, _ = make_read((DATA / "verbose.log").read_bytes())
    assert (requests[1].error, requests[1].total_ms) == ("cancelled", 600.0)


def test_marks_of_a_request_are_its_attributes() -> None:
    log = ReadLog()
    data = (DATA / "verbose.log").read_bytes()
    found = list(log_llamacpp.READER.read(io.BytesIO(data), Origin("l"), log, ReadOptions()))
    roots = [r for r in found if isinstance(r, Span) and r.parent_id is None]
    assert roots[0].attributes["llamacpp.prompt_similarity"] == 0.566
    assert roots[0].attributes["llamacpp.kept_share"] == 0.704
    assert roots[1].attributes["llamacpp.full_reprocessing"] is True


def test_the_old_order_and_the_record_of_several_lines_give_the_same() -> None:
    _, requests, log = make_read((DATA / "old.log").read_bytes())
    (request,) = requests
    assert (request.prompt_tokens, request.cached_tokens, request.output_tokens) == (520, 16, 52)
    assert request.total_ms == pytest.approx(2000.75)
    assert any("one after another" in note for note in log.notes)
    assert (log.kept, log.skipped) == (8, 2)


def test_a_truncated_prompt_is_marked_and_its_size_stays_unknown() -> None:
    text = (DATA / "own.log").read_text().replace("n_tokens = 134, truncated = 0", "n_tokens = 134, truncated = 1")
    _, requests, _ = make_read(text.encode())
    assert requests[0].prompt_tokens is None


def test_a_restart_in_the_same_file_goes_on_in_time() -> None:
    text = (DATA / "own.log").read_bytes()
    _, requests, _ = make_read(text + text)
    assert len(requests) == 8
    assert requests[4].arrival_ns > requests[3].arrival_ns
    assert len({r.id for r in requests}) == 8


def test_a_time_put_before_the_line_wins_over_the_servers_own() -> None:
    lines = [
        f"2026-12-01T16:21:0{n}.000Z {line}"
        for n, line in enumerate((DATA / "own.log").read_text().splitlines()[11:17])
    ]
    _, requests, _ = make_read("\n".join(lines).encode())
    assert requests[0].arrival_ns // 10**9 == WRITTEN_NS // 10**9 + 60


def test_slots_that_work_side_by_side_are_kept_apart() -> None:
    text = (DATA / "old.log").read_text()
    other = text.replace("id  3 | task 0", "id  1 | task 7")
    both = "".join(a + b for a, b in zip(text.splitlines(True)[:5], other.splitlines(True)[:5], strict=True))
    timings = "".join(text.splitlines(True)[5:9]) + "".join(other.splitlines(True)[5:9])
    _, requests, _ = make_read((both + timings).encode())
    assert [r.prompt_tokens for r in requests] == [520, 520]


def test_a_duration_of_years_is_a_broken_line() -> None:
    text = (DATA / "old.log").read_text().replace("1200.50 ms", "99999999999999.0 ms")
    _, _, log = make_read(text.encode())
    assert log.bad_rows == 1


@given(st.text(max_size=80), st.integers(0, 4000), st.sampled_from(["own.log", "verbose.log", "old.log"]))
def test_any_text_among_the_lines_is_survived(data: str, place: int, name: str) -> None:
    text = (DATA / name).read_bytes()
    text = text[: place % len(text)] + data.encode("utf-8", "replace") + text[place % len(text) :]
    log_llamacpp.sniff(text)
    _, requests, log = make_read(text)
    assert log.rows == sum(1 for row in text.split(b"\n") if row.decode().strip())
    assert all(r.total_ms >= 0 for r in requests)
