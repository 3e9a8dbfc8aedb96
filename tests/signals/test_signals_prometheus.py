import io
import json
import math
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.errors import BadInput
from ragclinic.signals.readers import prometheus_query, prometheus_remote, prometheus_text
from ragclinic.signals.readers.prometheus_proto import request_class
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Sample

NOW_NS = 1_796_142_000_000_000_000  # 2026-12-01T16:20:00Z


def make_read(reader: Reader, data: bytes) -> tuple[list[Sample], ReadLog]:
    log = ReadLog()
    found = list(reader.read(io.BytesIO(data), Origin("m", modified_ns=NOW_NS), log, ReadOptions()))
    assert all(isinstance(r, Sample) for r in found)
    return [r for r in found if isinstance(r, Sample)], log


def text(data: str) -> tuple[list[Sample], ReadLog]:
    return make_read(prometheus_text.READER, data.encode())


def test_a_sample_keeps_its_name_labels_and_value() -> None:
    found, _ = text('vllm:kv_cache_usage_perc{engine="0",model_name="a b, \\"c\\" } # {"} 0.93 1796142000000\n')
    assert found == [
        Sample(NOW_NS, "vllm:kv_cache_usage_perc", 0.93, {"engine": "0", "model_name": 'a b, "c" } # {'})
    ]


def test_a_counter_without_total_is_not_renamed() -> None:
    found, _ = text("# TYPE tgi_request_count counter\ntgi_request_count 5\n")
    assert [s.name for s in found] == ["tgi_request_count"]


def test_openmetrics_seconds_and_exemplars() -> None:
    found, log = text('a_bucket{le="0.1"} 8 1796142000.5 # {trace_id="x"} 0.054 1796142000.1\n# EOF\n')
    assert found == [Sample(NOW_NS + 500_000_000, "a_bucket", 8.0, {"le": "0.1"})]
    assert (log.kept, log.skipped) == (1, 1)


@pytest.mark.parametrize(
    "mark",
    [
        "# 2026-12-01T16:20:00Z",
        "1796142000",
        "1796142000123",
        "=== time: 2026-12-01 16:20:00 ===",
        "# scraped at 1796142000",
    ],
)
def test_a_line_that_holds_only_a_time_dates_the_scrape_below_it(mark: str) -> None:
    found, log = text(f"{mark}\nvllm:num_requests_running 1\n")
    assert [s.time_ns // 10**9 for s in found] == [NOW_NS // 10**9]
    assert log.rows == 2


def test_scrapes_without_times_keep_their_order_and_say_so() -> None:
    found, log = text("a 1\nb 2\na 3\nb 4\n")
    assert [s.time_ns - NOW_NS for s in found] == [0, 0, 1, 1]
    assert any("rates" in note for note in log.notes)


def test_values_that_are_no_numbers_are_counted_and_the_rest_is_read() -> None:
    found, log = text(
        'a NaN\nb +Inf\nc{ 1\nd{x="1} 2\ne one\nf 1 not-a-time\ng{a="1",a="2"} 3\n'
        "h 1e999 \ni 1 99999999999999999999\nj 7\n"
    )
    assert [(s.name, s.value) for s in found] == [("j", 7.0)]
    assert {b.kind: b.count for b in log.bad} == {"value not finite": 3, "not a sample": 6}
    assert log.rows == 10
    assert str(log.bad[0].first) == "m:3"


def test_text_that_only_looks_a_little_like_samples_is_not_claimed() -> None:
    assert prometheus_text.sniff(b"hello world 5\nanother line\n") == 0
    assert prometheus_text.sniff(b"") == 0
    assert prometheus_text.sniff(b'a 1\nb 2\nc{x="1"} 3 1796142000\n') >= 0.5
    assert prometheus_text.sniff(b"# HELP a b\n# TYPE a gauge\na 1\n") >= 0.9


@given(st.text(max_size=200))
def test_any_text_is_accounted_for_line_by_line(data: str) -> None:
    found, log = text(data)
    assert log.rows == sum(1 for row in data.encode("utf-8", "replace").split(b"\n") if row.decode().strip())
    assert len(found) == log.kept


def test_a_page_says_what_its_programs_could_have_told() -> None:
    _, log = text("DCGM_FI_DEV_FB_USED 1\nDCGM_FI_PROF_DRAM_ACTIVE 0.5\nvllm:kv_cache_usage_perc 1\nother 2\n")
    assert set(log.missing) == {"pcie throughput", "pcie link", "throttle reasons", "prefix hits"}
    assert "DCGM_FI_PROF_PCIE_RX_BYTES" in log.missing["pcie throughput"]
    _, log = text("other 2\n")
    assert log.missing == {}


def query(result: list[Any], kind: str = "matrix") -> tuple[list[Sample], ReadLog]:
    body = {"status": "success", "data": {"resultType": kind, "result": result}}
    return make_read(prometheus_query.READER, json.dumps(body).encode())


def test_a_matrix_and_a_vector_give_their_points() -> None:
    metric = {"__name__": "vllm:num_requests_waiting", "engine": "1"}
    found, log = query([{"metric": metric, "values": [[1796142000, "3"], [1796142015.5, "4"]]}])
    assert found[1] == Sample(NOW_NS + 15_500_000_000, "vllm:num_requests_waiting", 4.0, {"engine": "1"})
    assert log.kept == 2
    found, _ = query([{"metric": metric, "value": [1796142000, "3"]}], "vector")
    assert [s.value for s in found] == [3.0]


def test_an_expression_without_a_name_is_bad_and_says_what_to_ask_for() -> None:
    found, log = query([{"metric": {"le": "1"}, "values": [[1, "2"]]}])
    assert found == []
    assert "query the bare series" in log.bad[0].found


def test_a_native_histogram_becomes_buckets() -> None:
    native = {"count": "3", "sum": "4.5", "buckets": [[0, "0.5", "1", "1"], [0, "1", "2", "2"]]}
    found, _ = query([{"metric": {"__name__": "t"}, "histograms": [[1796142000, native]]}])
    assert [(s.name, s.labels.get("le"), s.value) for s in found] == [
        ("t_bucket", "1.0", 1.0),
        ("t_bucket", "2.0", 3.0),
        ("t_bucket", "+Inf", 3.0),
        ("t_sum", None, 4.5),
        ("t_count", None, 3.0),
    ]


def test_nan_points_are_counted_and_broken_ones_too() -> None:
    metric = {"__name__": "a"}
    found, log = query(
        [{"metric": metric, "values": [[1, "NaN"], [2, "5"]]}, {"metric": metric, "values": [[1]]}, 7]
    )
    assert [s.value for s in found] == [5.0]
    assert {b.kind: b.count for b in log.bad} == {"value not finite": 1, "not a series": 2}


def test_an_error_of_the_server_is_passed_on() -> None:
    data = b'{"status":"error","errorType":"bad_data","error":"parse error"}'
    assert prometheus_query.sniff(data) > 0.5
    with pytest.raises(BadInput, match="m: Prometheus answered: parse error"):
        make_read(prometheus_query.READER, data)


def test_an_answer_that_breaks_off_is_counted() -> None:
    whole = b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a"},"val'
    found, log = make_read(prometheus_query.READER, whole)
    assert (found, log.bad_rows) == ([], 1)


def make_body_1() -> bytes:
    request = request_class()()
    series = request.timeseries_1.add()
    series.labels.add(name="__name__", value="vllm:kv_cache_usage_perc")
    series.labels.add(name="engine", value="0")
    series.samples.add(value=0.5, timestamp=NOW_NS // 1_000_000)
    return bytes(cramjam.snappy.compress_raw(request.SerializeToString()))


def make_body_2() -> Any:
    request = request_class()()
    request.symbols.extend(["", "__name__", "ttft", "engine", "0"])
    request.timeseries_2.add(labels_refs=[1, 2, 3, 4])
    return request


def compress(request: Any) -> bytes:
    return bytes(cramjam.snappy.compress_raw(request.SerializeToString()))


def test_remote_write_1_gives_its_samples() -> None:
    found, log = make_read(prometheus_remote.READER, make_body_1())
    assert found == [Sample(NOW_NS, "vllm:kv_cache_usage_perc", 0.5, {"engine": "0"})]
    assert log.kept == 1
    assert prometheus_remote.sniff(make_body_1()) >= 0.9


def test_remote_write_2_resolves_its_symbols() -> None:
    request = make_body_2()
    request.timeseries_2[0].samples.add(value=2.0, timestamp=NOW_NS // 1_000_000)
    found, _ = make_read(prometheus_remote.READER, compress(request))
    assert found == [Sample(NOW_NS, "ttft", 2.0, {"engine": "0"})]
    assert prometheus_remote.sniff(compress(request)) >= 0.9


def test_a_native_histogram_of_remote_write_becomes_buckets_with_their_edges() -> None:
    request = make_body_2()
    native = request.timeseries_2[0].histograms.add(
        count_int=6, sum=9.0, schema=0, zero_threshold=0.001, zero_count_int=1, timestamp=NOW_NS // 1_000_000
    )
    native.positive_spans.add(offset=0, length=2)
    native.positive_spans.add(offset=1, length=1)
    native.positive_deltas.extend([2, -1, 1])
    found, _ = make_read(prometheus_remote.READER, compress(request))
    assert [(s.labels.get("le"), s.value) for s in found] == [
        ("0.001", 1.0),
        ("1.0", 3.0),
        ("2.0", 4.0),
        ("8.0", 6.0),
        ("+Inf", 6.0),
        (None, 9.0),
        (None, 6.0),
    ]


def test_stale_markers_are_passed_over_and_other_nans_are_bad() -> None:
    request = make_body_2()
    stale = b"\x09" + prometheus_remote.STALE + b"\x10\x01"
    request.timeseries_2[0].samples.add().MergeFromString(stale)
    request.timeseries_2[0].samples.add(value=math.nan, timestamp=1)
    found, log = make_read(prometheus_remote.READER, compress(request))
    assert (found, log.skipped, log.bad_rows) == ([], 1, 1)


def test_a_reference_past_the_symbols_is_bad_and_counts_its_samples() -> None:
    request = make_body_2()
    request.timeseries_2[0].labels_refs.append(99)
    request.timeseries_2[0].samples.add(value=1.0, timestamp=1)
    request.timeseries_2[0].samples.add(value=1.0, timestamp=2)
    _, log = make_read(prometheus_remote.READER, compress(request))
    assert {b.kind: b.count for b in log.bad} == {"label not in the symbol table": 2}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00",
        b"not snappy at all",
        b"\xff\xff\xff\xff\x0fxxxx",
        cramjam.snappy.compress_raw(b"\xff\xff\xff"),
    ],
)
def test_a_body_that_is_no_write_request_is_one_bad_row(body: bytes) -> None:
    found, log = make_read(prometheus_remote.READER, bytes(body))
    assert found == []
    assert log.bad_rows <= 1


@given(st.binary(max_size=300))
def test_any_bytes_are_survived_by_every_reader_of_prometheus(data: bytes) -> None:
    for reader in (prometheus_text.READER, prometheus_query.READER, prometheus_remote.READER):
        reader.sniff(data)
        found, log = make_read(reader, data)
        assert len(found) >= log.kept
    body = bytearray(make_body_1())
    for index, byte in enumerate(data[:20]):
        body[(index * 7 + byte) % len(body)] ^= byte
    make_read(prometheus_remote.READER, bytes(body))
