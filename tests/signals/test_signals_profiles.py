import io
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragclinic.signals.readers import bpftrace, nsight, perf_folded, perf_script
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Record, Sample, Span
from ragclinic.signals.requests import build_requests

DATA = Path(__file__).parents[1] / "data"
AT_16_20 = 1_796_142_000_000_000_000


def make_read(reader: Reader, data: bytes) -> tuple[list[Record], ReadLog]:
    log = ReadLog()
    found = list(reader.read(io.BytesIO(data), Origin("p", modified_ns=AT_16_20), log, ReadOptions()))
    return [r for r in found if isinstance(r, Sample | Span)], log


def samples(reader: Reader, data: bytes) -> tuple[list[Sample], ReadLog]:
    found, log = make_read(reader, data)
    return [r for r in found if isinstance(r, Sample)], log


def make_export(path: Path) -> bytes:
    """A small export with two nested ranges, a kernel launched in the inner one, a copy and two allocations."""
    thread = (4242 << 24) | 7
    with closing(sqlite3.connect(path)) as db:
        db.executescript("""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
            CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER NOT NULL);
            CREATE TABLE NVTX_EVENTS
                (start INT NOT NULL, end INT, eventType INT, text TEXT, textId INT, globalTid INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL
                (start INT, end INT, deviceId INT, streamId INT, correlationId INT, shortName INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY
                (start INT, end INT, deviceId INT, correlationId INT, bytes INT, copyKind INT);
            CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS
                (start INT, globalPid INT, deviceId INT, bytes INT, memoryOperationType INT);
        """)
        db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", (AT_16_20,))
        db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, "flash_fwd_kernel"), (2, "tenant:acme")])
        db.executemany(
            "INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?)",
            [
                (100, 900, 59, None, 2, thread),
                (200, 500, 59, "prefill", None, thread),
                (600, None, 59, "open", None, thread),
                (1, 2, 34, "a mark", None, thread),
            ],
        )
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (250, 260, ?, 11)", (thread,))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300, 420, 0, 7, 11, 1)")
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (500, 420, 0, 7, 12, 1)")
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (310, 330, 0, 99, 4096, 1)")
        db.executemany(
            "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (?, 0, 0, ?, ?)",
            [(20, 1000, 0), (40, 400, 1), (50, "lots", 0)],
        )
        db.commit()
    return path.read_bytes()


def test_nsight_lays_kernels_under_the_range_that_launched_them(tmp_path: Path) -> None:
    found, log = make_read(nsight.READER, make_export(tmp_path / "x.sqlite"))
    spans = {s.name: s for s in found if isinstance(s, Span)}
    assert spans["prefill"].parent_id == spans["tenant:acme"].span_id
    assert spans["flash_fwd_kernel"].parent_id == spans["prefill"].span_id
    assert spans["flash_fwd_kernel"].start_ns == AT_16_20 + 300
    assert spans["flash_fwd_kernel"].attributes["process.pid"] == 4242
    assert spans["host_to_device"].attributes["nsight.bytes"] == 4096
    held = [r.value for r in found if isinstance(r, Sample)]
    assert held == [1000.0, 600.0]
    assert {b.kind: b.count for b in log.bad} == {
        "range without an end": 1,
        "negative duration": 1,
        "not a memory event": 1,
    }
    assert log.kept == 6


def test_spans_of_a_profile_are_no_requests(tmp_path: Path) -> None:
    found, _ = make_read(nsight.READER, make_export(tmp_path / "x.sqlite"))
    requests = build_requests([s for s in found if isinstance(s, Span)])
    assert {r.kind for r in requests} == {"profile"}


def test_nsight_says_what_was_not_traced(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "y.sqlite")) as db:
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT)")
        db.execute("CREATE VIEW NVTX_EVENTS AS SELECT 1 AS start")
        db.commit()
    _, log = make_read(nsight.READER, (tmp_path / "y.sqlite").read_bytes())
    assert set(log.missing) == {"nvtx ranges", "kernels", "device memory"}
    assert [b.kind for b in log.bad] == ["unknown schema"]


@pytest.mark.parametrize("cut", [16, 100, 5000])
def test_a_damaged_export_is_counted(tmp_path: Path, cut: int) -> None:
    found, log = make_read(nsight.READER, make_export(tmp_path / "x.sqlite")[:cut])
    assert log.bad_rows == 1
    assert found == []


def test_nsight_is_told_from_other_databases(tmp_path: Path) -> None:
    assert nsight.sniff(make_export(tmp_path / "x.sqlite")) > 0.9
    assert nsight.sniff(b"SQLite format 3\x00" + bytes(100)) < 0.5


def test_bpftrace_histograms_become_buckets_by_key() -> None:
    found, log = samples(bpftrace.READER, (DATA / "bpftrace-json/runqlat.json").read_bytes())
    runq = [(s.labels["key"], s.labels["le"], s.value) for s in found if s.name == "bpftrace.runq_us_bucket"]
    assert runq == [
        ("python3", "0", 2.0),
        ("python3", "1", 13.0),
        ("python3", "3", 653.0),
        ("python3", "+Inf", 653.0),
        ("llama-server", "-1", 1.0),
        ("llama-server", "2047", 5.0),
        ("llama-server", "+Inf", 6.0),
    ]
    assert {s.time_ns for s in found} == {AT_16_20}
    assert [s.value for s in found if s.name == "bpftrace.connect_us.average"] == [310.0]
    assert [(s.value, s.labels) for s in found if s.name == "bpftrace.retransmits"] == [
        (5.0, {"key": "10.0.0.7,8000"})
    ]
    assert (log.kept, log.bad_rows) == (4, 1)
    assert any("lost events" in note for note in log.notes)


def test_bpftrace_faults_are_counted_and_series_carry_their_own_times() -> None:
    lines = (
        b'{"type": "helper_error", "msg": "Bad address"}\n'
        b'{"type": "tseries", "data": {"@a": [{"interval_start": "2026-12-01 16:20:00.5", "value": 9}]}}\n'
        b'{"type": "map", "data": [1]}\n'
    )
    found, log = samples(bpftrace.READER, lines)
    assert found == [Sample(AT_16_20 + 500_000_000, "bpftrace.a", 9.0, {})]
    assert {b.kind: b.count for b in log.bad} == {"fault in the probe": 1, "not a map": 1}


def test_perf_folds_each_stack_outermost_first() -> None:
    found, log = samples(perf_script.READER, (DATA / "perf-script/python.txt").read_bytes())
    assert found[0].labels["stack"] == "python;unicodekeys_lookup_unicode"
    assert found[0].value == 10101010.0
    assert found[1].time_ns - found[0].time_ns == pytest.approx(10_101_000, abs=1000)
    assert found[-1].labels == {
        "stack": "llama-server;[libgomp.so.1.0.0];ggml_compute_forward_mul_mat;ggml_vec_dot_q4_1_q8_1",
        "pid": "1881",
        "event": "cycles:u",
    }
    assert {b.kind: b.count for b in log.bad} == {"not a sample": 1}
    assert perf_script.sniff((DATA / "perf-script/python.txt").read_bytes()) > 0.5


def test_folded_stacks_keep_their_weights() -> None:
    found, log = samples(perf_folded.READER, (DATA / "folded-stacks/pyspy.txt").read_bytes())
    assert [s.value for s in found] == [412.0, 3.0, 97.0]
    assert found[0].labels["stack"].endswith("bm25 (rank_bm25.py:101)")
    assert log.bad_rows == 1
    assert perf_folded.sniff(b"a;b;c 1\na;b 2\n") > 0.5
    assert perf_folded.sniff(b'a{x="1;2"} 1\n') == 0


@settings(max_examples=50)
@given(st.binary(max_size=150), st.integers(0, 10_000))
def test_any_bytes_are_survived_by_the_readers_of_profiles(data: bytes, place: int) -> None:
    perf = (DATA / "perf-script/python.txt").read_bytes()[: place % 2000] + data
    bpf = (DATA / "bpftrace-json/runqlat.json").read_bytes()[: place % 900] + data
    for reader, text in (
        (perf_script.READER, perf),
        (bpftrace.READER, bpf),
        (perf_folded.READER, b"a;b 1\n" + data),
        (nsight.READER, b"SQLite format 3\x00" + data),
    ):
        reader.sniff(text)
        make_read(reader, text)
