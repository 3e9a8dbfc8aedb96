import io
import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.signals.readers import torch_oom, torch_snapshot, torch_stats, torch_summary
from ragclinic.signals.readers.plain_pickle import load_plain
from ragclinic.signals.readers.reader import Origin, Reader, ReadLog, ReadOptions
from ragclinic.signals.records import Sample

DATA = Path(__file__).parents[1] / "data"
MIB, GIB = 1024.0**2, 1024.0**3
AT_16_20 = 1_796_142_000_000_000_000


def make_read(reader: Reader, data: bytes) -> tuple[list[Sample], ReadLog]:
    log = ReadLog()
    records = reader.read(io.BytesIO(data), Origin("t", modified_ns=AT_16_20), log, ReadOptions())
    return [r for r in records if isinstance(r, Sample)], log


def values(samples: list[Sample], name: str) -> list[float]:
    return [s.value for s in samples if s.name == name]


def test_the_summary_gives_the_names_and_bytes_of_the_statistics() -> None:
    found, log = make_read(torch_summary.READER, (DATA / "torch-memory-summary/summary.txt").read_bytes())
    assert values(found, "torch.cuda.allocated_bytes.all.current") == [13982 * MIB]
    assert values(found, "torch.cuda.reserved_bytes.small_pool.freed") == [0.0]
    assert values(found, "torch.cuda.inactive_split_bytes.all.peak") == [9210 * MIB]
    assert values(found, "torch.cuda.allocation.all.allocated") == [1_140_000.0]
    assert values(found, "torch.cuda.num_ooms") == [2.0]
    assert {s.labels["device"] for s in found} == {"0"}
    assert (log.kept, log.bad_rows) == (16, 0)


def test_the_summary_of_old_versions_is_read_alike() -> None:
    table = (
        "PyTorch CUDA memory summary, device ID 1\n"
        "| Reserved memory       |  4261 MB |    4261 MB |     847 GB |     0 B |\n"
        "| Mystery memory        |  4261 MB |    4261 MB |     847 GB |     0 B |\n"
        "| Active memory         |  much    |    4261 MB |     847 GB |     0 B |\n"
    )
    found, log = make_read(torch_summary.READER, table.encode())
    assert values(found, "torch.cuda.reserved_bytes.all.current") == [4261 * MIB]
    assert {b.kind: b.count for b in log.bad} == {"unknown row": 1, "not a value": 1}


def test_statistics_are_read_with_their_times_and_empty_ones_are_bad() -> None:
    found, log = make_read(torch_stats.READER, (DATA / "torch-memory-stats/stats.jsonl").read_bytes())
    assert [(s.time_ns - AT_16_20, s.value) for s in found if s.name == "torch.cuda.num_ooms"] == [
        (500_000_000, 0.0),
        (1_500_000_000, 1.0),
    ]
    assert (log.kept, log.bad_rows) == (2, 1)


def test_nested_statistics_have_the_same_names() -> None:
    data = b'[{"allocated_bytes": {"all": {"current": 5}, "large_pool": {"current": 4}}, "num_ooms": 1}]'
    found, _ = make_read(torch_stats.READER, data)
    assert {s.name: s.value for s in found} == {
        "torch.cuda.allocated_bytes.all.current": 5.0,
        "torch.cuda.allocated_bytes.large_pool.current": 4.0,
        "torch.cuda.num_ooms": 1.0,
    }
    assert torch_stats.sniff(data) >= 0.5


def test_both_generations_of_the_error_say_what_is_held_and_not_given_out() -> None:
    found, log = make_read(torch_oom.READER, (DATA / "torch-oom/app.log").read_bytes())
    assert values(found, "torch.cuda.oom") == [1.96 * GIB, 20 * MIB]
    assert values(found, "torch.cuda.oom.total_bytes") == [79.18 * GIB, 24 * GIB]
    assert values(found, "torch.cuda.oom.free_bytes") == [1.08 * GIB, 10 * MIB]
    assert values(found, "torch.cuda.oom.allocated_bytes") == [75.31 * GIB, 14.5 * GIB]
    assert values(found, "torch.cuda.oom.reserved_unallocated_bytes") == pytest.approx([1.83 * GIB, 8.6 * GIB])
    assert [s.labels["device"] for s in found if s.name == "torch.cuda.oom"] == ["0", "1"]
    assert (log.kept, log.skipped) == (2, 3)


def test_an_error_in_a_traceback_has_the_time_of_the_line_before_it() -> None:
    found, _ = make_read(torch_oom.READER, (DATA / "torch-oom/app.log").read_bytes())
    assert found[0].time_ns == AT_16_20 + 512_000_000


def test_a_snapshot_gives_totals_and_the_course_of_the_memory() -> None:
    found, log = make_read(torch_snapshot.READER, (DATA / "torch-memory-snapshot/snapshot.pickle").read_bytes())
    last = {s.name: s.value for s in found}
    assert last["torch.cuda.reserved_bytes.all.current"] == 60 * MIB
    assert last["torch.cuda.allocated_bytes.all.current"] == 22 * MIB
    assert last["torch.cuda.inactive_split_bytes.all.current"] == 16 * MIB
    assert last["torch.cuda.largest_free_block_bytes"] == 20 * MIB
    allocated = values(found, "torch.cuda.allocated_bytes.all.current")
    assert allocated == [16 * MIB, 22 * MIB, 52 * MIB, 22 * MIB, 22 * MIB]
    assert values(found, "torch.cuda.oom") == [12 * MIB]
    assert values(found, "torch.cuda.oom.free_bytes") == [1 * MIB]
    assert found[0].time_ns == AT_16_20
    assert log.kept == 3 + 8


def test_a_snapshot_of_old_versions_is_a_bare_list_of_segments() -> None:
    segment = {"device": 1, "address": 2, "total_size": 8, "allocated_size": 4, "active_size": 4, "blocks": [
        {"size": 4, "state": "active_allocated"}, {"size": 4, "state": "inactive"}]}  # fmt: skip
    found, log = make_read(torch_snapshot.READER, pickle.dumps([segment, {"device": "x"}], protocol=2))
    assert values(found, "torch.cuda.largest_free_block_bytes") == [4.0]
    assert (log.kept, log.bad_rows) == (1, 1)
    assert "allocation history" in log.missing


class Hostile:
    """What an attacker would put into a pickle."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.call, self.arguments


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("call", [os.system, subprocess.check_output, eval, print, pickle.loads])
def test_a_hostile_pickle_is_refused_and_never_run(protocol: int, call: Any, tmp_path: Path) -> None:
    mark = tmp_path / "run"
    data = pickle.dumps({"segments": [], "device_traces": Hostile(call, f"touch {mark}")}, protocol=protocol)
    with pytest.raises(ValueError, match="expected"):
        load_plain(data)
    found, log = make_read(torch_snapshot.READER, data)
    assert (found, log.bad_rows, mark.exists()) == ([], 1, False)


def test_a_pickle_with_a_giant_memo_index_costs_no_memory() -> None:
    assert load_plain(b"\x80\x04]r\xff\xff\xff\xff.") == []


@pytest.mark.parametrize("protocol", range(2, 6))
def test_plain_values_are_read_as_they_were(protocol: int) -> None:
    value = [1, 2.5, "x", None, True, (1,), {"a": {1: [2]}, 3: (), "c": (1, 2, 3, 4)}, 2**80, -7, 300, 70_000]
    assert load_plain(pickle.dumps(value, protocol=protocol)) == value


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
        max_leaves=20,
    )
)
def test_any_plain_value_is_read_as_the_plain_unpickler_would(value: object) -> None:
    assert load_plain(pickle.dumps(value)) == value


def test_a_key_nested_a_million_deep_is_refused_and_overflows_nothing() -> None:
    with pytest.raises(ValueError, match="neither text nor number"):
        load_plain(b"\x80\x04})" + b"\x85" * 1_000_000 + b"Ns.")


def test_sets_are_not_needed_and_not_made() -> None:
    with pytest.raises(ValueError, match="expected a pickle of"):
        load_plain(pickle.dumps({"a": {1, 2}}, protocol=4))


@given(st.binary(max_size=200), st.integers(0, 4000))
def test_any_bytes_are_survived_by_the_readers_of_pytorch(data: bytes, cut: int) -> None:
    sample = (DATA / "torch-memory-snapshot/snapshot.pickle").read_bytes()
    broken = sample[: cut % len(sample)] + data
    for reader in (torch_snapshot.READER, torch_stats.READER, torch_summary.READER, torch_oom.READER):
        for text in (broken, b"PyTorch CUDA memory summary, device ID 0\n" + data):
            reader.sniff(text)
            make_read(reader, text)
