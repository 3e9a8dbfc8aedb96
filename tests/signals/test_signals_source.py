"""Inputs are opened by their content: plain, compressed, UTF-16, piped; what is broken says where."""

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pytest

from ragclinic.errors import BadInput
from ragclinic.signals import source as source_room
from ragclinic.signals.source import find_sources, open_source

TEXT = b"one\ntwo\nthree\n" * 20_000


def zstd(data: bytes) -> bytes:
    """Data compressed as zstd does."""
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def whole(path: Path) -> bytes:
    """All that comes out of a file."""
    with open_source(find_sources([path])[0]) as opened:
        assert opened.head == TEXT[: len(opened.head)] or len(opened.head) < 100
        return opened.stream.read()


@pytest.mark.parametrize("data", [TEXT, gzip.compress(TEXT), zstd(TEXT)], ids=["plain", "gzip", "zstd"])
def test_a_file_is_decompressed_by_its_first_bytes_whatever_its_name(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    path.write_bytes(data)
    assert whole(path) == TEXT


def test_two_compressed_files_in_a_row_are_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    assert whole(path) == b"a\nb\n"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_its_mark_becomes_utf_8(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    path.write_bytes(("\ufeff" + "名, 值\r\n").encode(encoding))
    assert whole(path).decode("utf-8") == "名, 值\r\n"


def test_the_mark_of_utf_8_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf{}")
    assert whole(path) == b"{}"


def test_what_stands_before_the_damage_is_read_and_the_damage_named(tmp_path: Path) -> None:
    data = zstd(bytes(range(256)) * 4000 + TEXT)
    path = tmp_path / "t.zst"
    path.write_bytes(data[: len(data) - 5])
    with open_source(find_sources([path])[0]) as opened:
        assert len(opened.stream.read()) > 1_000_000
        assert len(opened.damage) == 1
        assert "t.zst: damaged zstd (Truncated compressed stream) after " in str(opened.damage[0])
        assert str(opened.damage[0]).endswith("plain bytes; expected a whole file; what came before was read")


def test_what_is_damaged_from_its_beginning_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.gz"
    path.write_bytes(b"\x1f\x8b\x08" + b"x" * 50)
    with pytest.raises(BadInput, match=r"t\.gz: damaged gzip"), open_source(find_sources([path])[0]):
        pass


def test_a_file_that_explodes_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_room, "FREE_EXPANSION_BYTES", 1024 * 1024)
    path = tmp_path / "bomb.zst"
    path.write_bytes(zstd(bytes(64 * 1024 * 1024)))
    with open_source(find_sources([path])[0]) as opened:
        assert len(opened.stream.read()) < 8 * 1024 * 1024
        assert "bomb.zst: expands more than 500 times" in str(opened.damage[0])


def test_an_archive_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    path.write_bytes(b"PK\x03\x04rest")
    expected = r"traces.json: a zip archive; expected plain, gzip or zstd; unpack it first"
    with pytest.raises(BadInput, match=expected), open_source(find_sources([path])[0]):
        pass


def test_a_folder_is_searched_in_order_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b/2.log", "a/1.log", ".git/x", "b/.hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [Path(s.path).name for s in find_sources([tmp_path])] == ["1.log", "2.log"]


def test_standard_input_is_read_and_left_open() -> None:
    given = io.BytesIO(gzip.compress(b"line\n"))
    with open_source(find_sources(["-"], given)[0]) as opened:
        assert (opened.stream.read(), str(opened.origin)) == (b"line\n", "stdin")
    assert not given.closed


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file or folder; expected one to read; check the path"):
        find_sources([tmp_path / "gone"])
    with pytest.raises(BadInput, match="no file in it; expected traces, metrics or logs"):
        find_sources([tmp_path])
    (tmp_path / "recording.json").write_text("{}")
    with pytest.raises(
        BadInput, match="holds a recording already; expected files to import; diagnose it as it is"
    ):
        find_sources([tmp_path])


def test_bytes_are_counted_as_they_lie_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(TEXT))
    taken: list[int] = []
    with open_source(find_sources([path])[0], taken.append) as opened:
        opened.stream.read()
    assert sum(taken) == path.stat().st_size
