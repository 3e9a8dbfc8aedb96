"""A recording keeps what was added, survives a kill, and refuses what is damaged."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ragclinic.errors import BadInput
from ragclinic.signals.content import ContentPolicy
from ragclinic.signals.recording import RecordingWriter, open_recording, segments
from ragclinic.signals.records import Chunk, Part, Sample, Span

SPAN = Span(
    "t1", "s1", None, "rag.request", 1_000_000, 9_000_000, "svc", None, {"input.value": "What is a KV cache?"}
)
CHUNK = Chunk("t1", 0, "c1", "doc", 0, 10, 0.5, 3, "red green blue")
PART = Part("t1", 0, "context", 3, "red green blue", (5, 6, 7), 0)


def write(folder: Path, policy: ContentPolicy | None = None, flush_s: float = 60.0) -> None:
    """Writes one record of each kind."""
    with RecordingWriter(folder, {"model": "m"}, policy or ContentPolicy(), flush_s) as writer:
        writer.add(SPAN, CHUNK, PART, Sample(1, "x", 2.0, {"slot": "0"}))


def test_what_was_added_is_read_back(tmp_path: Path) -> None:
    write(tmp_path / "rec")
    recording = open_recording(tmp_path / "rec")
    assert recording.meta["model"] == "m"
    assert recording.table("chunks").to_pylist()[0]["text"] == "red green blue"
    assert recording.table("parts").to_pylist()[0]["token_keys"] == [5, 6, 7]
    assert recording.table("samples").to_pylist() == [
        {"time_ns": 1, "name": "x", "value": 2.0, "labels": '{"slot":"0"}'}
    ]


def test_sql_answers_over_all_tables(tmp_path: Path) -> None:
    write(tmp_path / "rec")
    found = open_recording(tmp_path / "rec").sql(
        "SELECT s.name, c.doc FROM spans s JOIN chunks c USING (trace_id)"
    )
    assert found.to_pylist() == [{"name": "rag.request", "doc": "doc"}]


def test_wrong_sql_is_one_clear_line(tmp_path: Path) -> None:
    write(tmp_path / "rec")
    with pytest.raises(BadInput, match=r"^SQL: .*; expected a query over spans, samples, chunks, parts; mend it$"):
        open_recording(tmp_path / "rec").sql("SELEC 1")


def test_hashed_content_holds_no_text_but_still_tells_repetition(tmp_path: Path) -> None:
    write(tmp_path / "rec", ContentPolicy("hashed"))
    recording = open_recording(tmp_path / "rec")
    chunk = recording.table("chunks").to_pylist()[0]
    part = recording.table("parts").to_pylist()[0]
    assert chunk["text"] is None
    assert len(chunk["keys"]) == 3
    assert part["text"] is None
    assert len(part["token_keys"]) == 3
    assert part["token_keys"] != [5, 6, 7]
    files = b"".join(p.read_bytes() for p in (tmp_path / "rec").rglob("*") if p.is_file())
    assert b"green" not in files
    assert b"KV cache" not in files


def test_two_recordings_hash_with_different_salts() -> None:
    one, two = ContentPolicy("hashed").apply(CHUNK), ContentPolicy("hashed").apply(CHUNK)
    assert isinstance(one, Chunk)
    assert isinstance(two, Chunk)
    assert one.keys != two.keys


def test_content_off_keeps_counts_only() -> None:
    part = ContentPolicy("off").apply(PART)
    assert part == Part("t1", 0, "context", 3, None, None, 0)


def test_closing_joins_the_segments(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "rec", {}, ContentPolicy(), 60.0) as writer:
        for number in range(5):
            writer.add(Sample(number, "x", 1.0))
            writer.flush()
        assert len(segments(tmp_path / "rec", "samples")) == 5
    assert [p.name for p in segments(tmp_path / "rec", "samples")] == ["000001-000005.parquet"]
    assert open_recording(tmp_path / "rec").table("samples").column("time_ns").to_pylist() == [0, 1, 2, 3, 4]


def test_a_crash_between_joining_and_deleting_counts_no_row_twice(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "rec", {}, ContentPolicy(), 60.0) as writer:
        for number in range(3):
            writer.add(Sample(number, "x", 1.0))
            writer.flush()
        first = segments(tmp_path / "rec", "samples")[0]
        kept = first.read_bytes()
    first.write_bytes(kept)  # as if the process had died before it deleted this one
    assert open_recording(tmp_path / "rec").table("samples").num_rows == 3


def test_a_folder_that_holds_a_recording_is_not_overwritten(tmp_path: Path) -> None:
    write(tmp_path / "rec")
    with pytest.raises(BadInput, match="holds a recording already; expected a new folder"):
        write(tmp_path / "rec")


@pytest.mark.parametrize("damage", [b"", b"PAR1 and then nothing", None])
def test_a_damaged_segment_is_named(tmp_path: Path, damage: bytes | None) -> None:
    write(tmp_path / "rec")
    path = segments(tmp_path / "rec", "spans")[0]
    path.write_bytes(path.read_bytes()[:-20] if damage is None else damage)
    with pytest.raises(
        BadInput, match=r"spans/000\d+\.parquet: damaged segment .*remove the file to read the rest"
    ):
        open_recording(tmp_path / "rec").table("spans")


def test_no_recording_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no recording\.json there; expected a folder that ragclinic recorded"):
        open_recording(tmp_path)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "recording.json").write_text('{"schema_version": 99}')
    with pytest.raises(BadInput, match="schema 99; expected at most 1; use a newer ragclinic"):
        open_recording(tmp_path)


CHILD = """
import sys, time
from pathlib import Path
from ragclinic.signals.content import ContentPolicy
from ragclinic.signals.recording import RecordingWriter
from ragclinic.signals.records import Sample
writer = RecordingWriter(Path(sys.argv[1]), {}, ContentPolicy())
number = 0
while True:
    writer.add(Sample(time.time_ns(), "x", float(number)))
    number += 1
    if number % 50 == 0:
        print(time.time_ns(), number, flush=True)
    time.sleep(0.001)
"""


@pytest.mark.slow
def test_a_killed_process_loses_at_most_the_last_second(tmp_path: Path) -> None:
    folder = tmp_path / "rec"
    process = subprocess.Popen([sys.executable, "-c", CHILD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said: list[tuple[int, int]] = []
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not (said and said[-1][0] - said[0][0] > 3_000_000_000):
        when, number = process.stdout.readline().split()
        said.append((int(when), int(number)))
    killed_ns = time.time_ns()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    kept = open_recording(folder).table("samples").column("value").to_pylist()
    a_second_before = [number for when, number in said if when < killed_ns - 1_200_000_000]
    assert a_second_before
    assert kept == [float(n) for n in range(len(kept))]
    assert len(kept) >= a_second_before[-1]


def test_segments_are_plain_parquet_that_other_programs_read(tmp_path: Path) -> None:
    write(tmp_path / "rec")
    assert pq.read_table(segments(tmp_path / "rec", "spans")[0]).num_rows == 1
