"""Every format's samples give what their golden summary says; cut off or damaged, they still give no error.

`UPDATE_GOLDEN=1 pytest tests/signals/test_signals_golden.py` writes the summaries; read the difference before
you commit it.
"""

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragclinic.signals.importing import ImportReport, import_paths
from ragclinic.signals.readers import READERS, SURE_ENOUGH, Reader
from ragclinic.signals.readers.reader import HEAD_BYTES, Origin, ReadLog, ReadOptions, Rows

DATA = Path(__file__).parents[1] / "data"
GOLDEN = "golden.json"
BY_ID = {reader.id: reader for reader in READERS}
FOLDERS = sorted(path.name for path in DATA.iterdir() if path.is_dir()) if DATA.is_dir() else []
CUTS = 24


def samples(folder: str) -> list[Path]:
    """The sample files of a format."""
    return sorted(path for path in (DATA / folder).iterdir() if path.name != GOLDEN)


SAMPLES = [(folder, path.name) for folder in FOLDERS for path in samples(folder)]


def summary(report: ImportReport) -> dict[str, object]:
    """What a golden file holds: no times, no paths."""
    return {
        "sources": {
            Path(s.path).name: {
                "format": s.format,
                "kept": s.kept,
                "skipped": s.skipped,
                "bad": {b.kind: b.count for b in s.bad},
                "missing": sorted(s.missing),
                "notes": list(s.notes),
            }
            for s in report.sources
        },
        "rows": dict(report.rows),
        "kept": report.kept,
        "bad": {b.kind: b.count for b in report.bad},
        "joined": report.finished.joined,
        "orphans": report.finished.orphans,
    }


@pytest.mark.parametrize("folder", FOLDERS)
def test_samples_give_their_golden_summary(folder: str, tmp_path: Path) -> None:
    golden = DATA / folder / GOLDEN
    report = import_paths(samples(folder), tmp_path / "rec")
    found = summary(report)
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True) + "\n", "utf-8")
    assert found == json.loads(golden.read_text("utf-8"))


def test_every_format_has_a_sample() -> None:
    assert sorted(BY_ID) == FOLDERS


@pytest.mark.parametrize(("folder", "name"), SAMPLES)
def test_one_reader_is_surest_of_a_sample_and_it_is_its_own(folder: str, name: str) -> None:
    head = (DATA / folder / name).read_bytes()[:HEAD_BYTES]
    sure = sorted(((reader.sniff(head), reader.id) for reader in READERS), reverse=True)
    assert sure[0][1] == folder
    assert sure[0][0] >= SURE_ENOUGH
    assert sure[0][0] > sure[1][0]


def read(reader: Reader, data: bytes) -> ReadLog:
    """Reads bytes to their end."""
    log = ReadLog()
    for found in reader.read(
        io.BytesIO(data), Origin("sample", modified_ns=1_796_142_000 * 10**9), log, options()
    ):
        assert len(found.data) > 0 if isinstance(found, Rows) else found is not None
    return log


def options() -> ReadOptions:
    """Options of a person who said nothing."""
    return ReadOptions()


@pytest.mark.parametrize(("folder", "name"), SAMPLES)
def test_a_sample_cut_off_anywhere_is_read_up_to_there(folder: str, name: str) -> None:
    data = (DATA / folder / name).read_bytes()
    whole = read(BY_ID[folder], data)
    for cut in range(0, len(data), max(1, len(data) // CUTS)):
        assert read(BY_ID[folder], data[:cut]).kept <= whole.kept


def damaged(data: bytes) -> Iterator[st.SearchStrategy[bytes]]:
    """Ways in which a file is spoilt: a stretch replaced by others, zeros, another part of itself, or nothing."""
    at = st.integers(0, max(0, len(data) - 1))
    size = st.integers(0, 64)
    yield st.builds(lambda a, n, new: data[:a] + new + data[a + n :], at, size, st.binary(max_size=64))
    yield st.builds(lambda a, n, b: data[:a] + data[b : b + n] + data[a:], at, size, at)
    yield st.builds(lambda a, n: data[:a] + bytes(n) + data[a + n :], at, size)


@pytest.mark.parametrize(("folder", "name"), SAMPLES)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(more=st.data())
def test_a_damaged_sample_raises_nothing(folder: str, name: str, more: st.DataObject) -> None:
    data = (DATA / folder / name).read_bytes()
    read(BY_ID[folder], more.draw(st.one_of(*damaged(data))))


@pytest.mark.parametrize("id_", sorted(BY_ID))
@settings(max_examples=20, deadline=None)
@given(data=st.one_of(st.binary(max_size=400), st.text(max_size=300).map(lambda t: t.encode("utf-8", "replace"))))
def test_any_bytes_are_survived_by_every_reader(id_: str, data: bytes) -> None:
    log = read(BY_ID[id_], data)
    assert log.rows == log.kept + log.bad_rows + log.skipped


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=400))
def test_no_sniff_raises_and_each_says_from_0_to_1(data: bytes) -> None:
    assert all(0.0 <= reader.sniff(data) <= 1.0 for reader in READERS)
