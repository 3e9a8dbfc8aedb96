import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.signals.readers import log_sglang, log_vllm
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Sample, Span
from ragclinic.signals.requests import build_requests

DATA = Path(__file__).parents[1] / "data"
AT_16_20 = 1_796_142_000_000_000_000  # 2026-12-01T16:20:00Z
SECOND = 10**9


def make_read(reader: Reader, data: bytes) -> tuple[list[Sample], list[Span], ReadLog]:
    log = ReadLog()
    found = list(
        reader.read(io.BytesIO(data), Origin("l", modified_ns=AT_16_20 + 3600 * SECOND), log, ReadOptions())
    )
    return [r for r in found if isinstance(r, Sample)], [r for r in found if isinstance(r, Span)], log


def values(samples: list[Sample], name: str) -> list[float]:
    return [s.value for s in samples if s.name == name]


def test_vllm_v1_statistics_keep_the_names_of_the_metrics() -> None:
    found, _, log = make_read(log_vllm.READER, (DATA / "vllm-log/v1.log").read_bytes())
    assert values(found, "vllm:kv_cache_usage_perc") == pytest.approx([0.612, 0.998])
    assert values(found, "vllm:num_requests_waiting") == [0.0, 7.0]
    assert values(found, "vllm.log.preemptions") == [9.0]
    assert values(found, "vllm:num_requests_waiting_by_reason") == [2.0]
    assert values(found, "vllm.log.prefix_cache_hit_rate") == pytest.approx([0.125, 0.121])
    assert values(found, "vllm.log.external_prefix_cache_hit_rate") == [0.0]
    usage = next(s for s in found if s.name == "vllm:kv_cache_usage_perc")
    assert usage.labels == {"engine": "0"}
    assert usage.time_ns == AT_16_20 + 61 * SECOND
    assert {b.kind: b.count for b in log.bad} == {"broken line": 1}
    assert log.rows == 12


def test_vllm_sizes_start_and_compilations_are_told() -> None:
    found, _, _ = make_read(log_vllm.READER, (DATA / "vllm-log/v1.log").read_bytes())
    assert values(found, "vllm.log.kv_cache_tokens") == [43856.0]
    assert values(found, "vllm.log.max_concurrency") == [5.35]
    assert values(found, "vllm.log.kv_cache_bytes") == pytest.approx([4.8 * 1024**3])
    assert values(found, "vllm.log.init_engine_s") == [61.39]
    assert values(found, "vllm.log.compilation_s") == [32.45]
    assert [s.labels["kernel"] for s in found if s.name == "vllm.log.jit_compilations"] == ["_fwd_kernel_stage1"]
    assert values(found, "vllm.log.spec_decode_acceptance_rate") == pytest.approx([0.601])


def test_vllm_v0_has_the_same_names_and_prints_the_total_of_preemptions() -> None:
    found, _, log = make_read(log_vllm.READER, (DATA / "vllm-log/v0.log").read_bytes())
    assert values(found, "vllm:kv_cache_usage_perc") == pytest.approx([0.921])
    assert values(found, "vllm:num_requests_waiting") == [3.0]
    assert values(found, "vllm:num_requests_swapped") == [1.0]
    assert values(found, "vllm:num_preemptions_total") == [51.0]
    assert values(found, "vllm.log.prefix_cache_hit_rate") == pytest.approx([0.032])
    assert values(found, "vllm.log.quantization_unoptimized") == [1.0]
    assert log.kept == 5
    assert "preemptions" not in log.missing


def test_a_log_without_preemption_parts_says_that_they_are_missing() -> None:
    line = b"INFO 12-01 16:20:00 [loggers.py:1] Engine 001: Avg prompt throughput: 1.0 tokens/s, Running: 1 reqs\n"
    found, _, log = make_read(log_vllm.READER, line)
    assert {s.labels["engine"] for s in found} == {"1"}
    assert "preemptions" in log.missing


def test_the_mean_over_engines_is_marked_as_one() -> None:
    line = b"4 Engines Aggregated: Avg prompt throughput: 1.0 tokens/s, GPU KV cache usage: 50.0%\n"
    found, _, log = make_read(log_vllm.READER, line)
    assert found[0].labels == {"engine": "all", "engines": "4"}
    assert any("mean" in note for note in log.notes)


def test_an_out_of_memory_error_in_the_log_has_the_time_of_the_line_before() -> None:
    data = (
        b"ERROR 12-01 16:20:00 [core.py:1] EngineCore failed\nTraceback (most recent call last):\n"
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total\n"
    )
    found, _, _ = make_read(log_vllm.READER, data)
    assert found == [Sample(AT_16_20, "torch.cuda.oom", 2 * 1024.0**3, {"device": "1"})]


def test_a_date_without_a_year_lies_before_the_file_was_written() -> None:
    line = b"INFO 12-31 23:59:59 [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s\n"
    found, _, log = make_read(log_vllm.READER, line)
    assert found[0].time_ns < AT_16_20
    assert any("without a year" in note for note in log.notes)


def test_sglang_batches_keep_the_names_of_the_metrics() -> None:
    found, _, log = make_read(log_sglang.READER, (DATA / "sglang-log/tp2.log").read_bytes())
    assert values(found, "sglang:token_usage") == [0.61, 0.62, 1.0, 0.01]
    assert values(found, "sglang:swa_token_usage") == [0.06]
    assert values(found, "sglang:num_queue_reqs") == [0.0, 0.0, 3.0, 0.0]
    assert values(found, "sglang.log.cached_tokens") == [512.0, 0.0]
    assert values(found, "sglang.log.retracted_reqs") == [2.0, 1.0]
    assert values(found, "sglang:max_total_num_tokens") == [20480.0, 20480.0]
    assert values(found, "sglang.log.kv_cache_bytes") == [8 * 1024**3]
    assert found[0].labels == {"tp_rank": "0"}
    assert {b.kind: b.count for b in log.bad} == {"broken line": 1}
    assert (log.kept, log.skipped) == (9, 1)


def test_sglang_request_statistics_become_a_request_with_its_queue() -> None:
    _, spans, _ = make_read(log_sglang.READER, (DATA / "sglang-log/tp2.log").read_bytes())
    (request,) = build_requests(spans)
    assert [s.name for s in request.stages] == ["queue", "generate"]
    assert [s.duration_ms for s in request.stages] == pytest.approx([812.4, 4120.1])
    assert (request.prompt_tokens, request.output_tokens) == (4608, 120)
    assert request.arrival_ns == 1779594708_100_000_000


def test_a_request_without_a_wall_clock_ends_with_its_line() -> None:
    line = b"[2026-05-24 03:51:53] queue_duration=100.00ms, forward_duration=400.00ms, start_time=88.10\n"
    _, spans, _ = make_read(log_sglang.READER, line)
    assert (spans[0].end_ns - spans[0].start_ns) / 1e6 == 500
    assert spans[0].end_ns % SECOND == 0


@pytest.mark.parametrize(
    ("reader", "line"),
    [
        (log_sglang.READER, "[2026-05-24 03:51:53] queue_duration=-1ms, forward_duration=4ms, start_time=1"),
        (log_sglang.READER, "[2026-05-24 03:51:53 TP0] Decode batch, #running-req: nan, token usage: 0.1"),
        (log_vllm.READER, "Engine 000: Avg prompt throughput: nan tokens/s"),
        (log_vllm.READER, "Engine 000: Avg prompt throughput: 1.2.3 tokens/s"),
    ],
)
def test_numbers_that_are_none_make_a_line_bad(reader: Reader, line: str) -> None:
    found, spans, log = make_read(reader, line.encode())
    assert (found, spans, log.bad_rows) == ([], [], 1)


def test_two_logs_in_a_row_give_the_sum_of_both() -> None:
    one, two = (DATA / "vllm-log/v0.log").read_bytes(), (DATA / "vllm-log/v1.log").read_bytes()
    counts = [len(make_read(log_vllm.READER, data)[0]) for data in (one, two, one + two)]
    assert counts[0] + counts[1] == counts[2]


@given(st.text(max_size=100), st.integers(0, 1500), st.booleans())
def test_any_line_of_an_engine_is_survived(data: str, place: int, crlf: bool) -> None:
    for reader, name in ((log_vllm.READER, "vllm-log/v1.log"), (log_sglang.READER, "sglang-log/tp2.log")):
        text = (DATA / name).read_bytes()
        text = text[: place % len(text)] + data.encode("utf-8", "replace") + text[place % len(text) :]
        text = text.replace(b"\n", b"\r\n") if crlf else text
        reader.sniff(text)
        found, _, log = make_read(reader, text)
        assert log.rows == sum(1 for row in text.split(b"\n") if row.decode().strip())
        assert all(s.value == s.value for s in found)
