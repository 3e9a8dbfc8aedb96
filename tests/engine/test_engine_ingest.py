"""Ingest mirrors its source, tells what it could not read, and goes on where it was interrupted."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from ragclinic.engine import ingest as ingest_module
from ragclinic.engine.documents import FileDocument
from ragclinic.engine.embed import Vectors
from ragclinic.engine.index import Index
from ragclinic.engine.ingest import IngestReport, ingest
from ragclinic.engine.settings import ChunkingSettings
from ragclinic.engine.word_tokenizer import WordTokenizer
from ragclinic.errors import BadInput, Unreachable

CHUNKING = ChunkingSettings(size_tokens=24, overlap_tokens=6)


class CountingEmbedder:
    """Vectors of one direction; counts texts, and fails after so many."""

    def __init__(self, identity: str = "counting/4", fail_after: int | None = None) -> None:
        self.identity = identity
        self.texts = 0
        self._fail_after = fail_after

    def __call__(self, texts: Sequence[str], /) -> Vectors:
        self.texts += len(texts)
        if self._fail_after is not None and self.texts > self._fail_after:
            raise Unreachable("http://host: gone")
        return np.tile(np.array([1, 0, 0, 0], np.float32), (len(texts), 1))


def run(source: Path, out: Path, embed: CountingEmbedder | None = None, max_file_mb: float = 50.0) -> IngestReport:
    return ingest(source, out, CHUNKING, embed or CountingEmbedder(), WordTokenizer(), max_file_mb=max_file_mb)


def write(folder: Path, **texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text, "utf-8")
    return folder


def texts_of(out: Path) -> dict[str, str]:
    index = Index.open(out, "counting/4")
    return {doc: index.text(doc) for doc in index.documents()}


@pytest.fixture
def small_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit for each document."""
    monkeypatch.setattr(ingest_module, "_COMMIT_CHARS", 1)
    monkeypatch.setattr(ingest_module, "_COMMIT_SHARE", 0.0)


def test_a_folder_in_four_formats_and_two_languages_becomes_an_index(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", guide="# Guide\n\nOpen slowly.", 指南="# 指南\n\n慢慢打开。")
    (folder / "page.html").write_text("<html><body><p>Close fast.</p></body></html>")
    (folder / "notes.txt").write_bytes("关得快。".encode("gb18030"))
    report = run(folder, tmp_path / "index")
    assert (report.written, report.documents, report.refused) == (4, 4, ())
    assert texts_of(tmp_path / "index") == {
        "guide.md": "# Guide\n\nOpen slowly.",
        "notes.txt": "关得快。",
        "page.html": "Close fast.",
        "指南.md": "# 指南\n\n慢慢打开。",
    }
    index = Index.open(tmp_path / "index", "counting/4")
    assert report.chunks == len(index)
    assert report.sentences == sum(len(index.sentences(doc).spans) for doc in index.documents())


def test_files_that_cannot_be_read_are_named_and_the_rest_is_there(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", good="Text.")
    (folder / "cut.pdf").write_bytes(b"%PDF-1.7\n1 0 obj\n<<")
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    with (folder / "big.txt").open("wb") as file:
        file.truncate(200_000_000)
    report = run(folder, tmp_path / "index")
    assert (report.written, report.documents) == (1, 1)
    assert {refused.doc: refused.reason.split(";")[0] for refused in report.refused} == {
        "big.txt": "200 MB",
        "cut.pdf": "PDF cut off: no end mark",
        "photo.png": "a PNG picture",
    }


def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", good="Text.", hidden="Text.")
    (folder / "hidden.md").chmod(0)
    if os.access(folder / "hidden.md", os.R_OK):
        pytest.skip("this user may read everything")
    report = run(folder, tmp_path / "index")
    assert report.refused[0].reason.startswith("Permission denied; expected a file that can be read")


def test_a_higher_limit_lets_a_larger_file_in(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", large="Some words. " * 1000)
    with pytest.raises(
        BadInput, match=r"large.md: 0 MB; expected at most 0.001 MB; split it or raise --max-file-mb"
    ):
        run(folder, tmp_path / "index", max_file_mb=0.001)
    assert run(folder, tmp_path / "index", max_file_mb=1).written == 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "docs: no files in it; expected Markdown, text, HTML or PDF; put some there or name another"),
        ({"a.bin": b"\0\1\2"}, "docs/a.bin: binary data; expected Markdown, text, HTML or PDF"),
        ({"cut.pdf": b"%PDF-1.7 cut"}, "docs/cut.pdf: PDF cut off: no end mark; expected a whole file"),
        (
            {"a": b"", "b": b"\0"},
            "docs: none of its 2 files can be read, as {folder}/a: no text in it; expected some",
        ),
    ],
    ids=["empty", "binary", "truncated", "several"],
)
def test_where_nothing_can_be_read_nothing_is_written(
    files: dict[str, bytes], message: str, tmp_path: Path
) -> None:
    folder = write(tmp_path / "docs")
    for name, data in files.items():
        (folder / name).write_bytes(data)
    with pytest.raises(BadInput) as caught:
        run(folder, tmp_path / "index")
    assert str(caught.value).startswith(f"{tmp_path}/{message.replace('{folder}', str(folder))}")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "index").exists()


def test_a_second_time_only_what_changed_is_embedded(small_commits: None, tmp_path: Path) -> None:
    folder, out = write(tmp_path / "docs", a="One.", b="Two.", c="Three."), tmp_path / "index"
    run(folder, out)
    write(folder, b="Two, changed.", d="Four.")
    (folder / "c.md").unlink()
    embed = CountingEmbedder()
    report = run(folder, out, embed)
    assert (report.written, report.unchanged, report.removed, report.documents) == (2, 1, 1, 3)
    assert embed.texts == 4  # a chunk and a sentence for each of the two
    assert texts_of(out) == {"a.md": "One.", "b.md": "Two, changed.", "d.md": "Four."}
    assert sorted(path.name for path in (out / "segments").iterdir()) == ["000001", "000004", "000005"]


def test_a_document_that_can_no_longer_be_read_stays_as_it_was(tmp_path: Path) -> None:
    folder, out = write(tmp_path / "docs", a="One.", b="Two."), tmp_path / "index"
    run(folder, out)
    (folder / "b.md").write_bytes(b"\0")
    assert [refused.doc for refused in run(folder, out).refused] == ["b.md"]
    assert texts_of(out) == {"a.md": "One.", "b.md": "Two."}


def test_the_index_is_not_its_own_document(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", a="One.")
    run(folder, folder / "index")
    assert run(folder, folder / "index").documents == 1


def test_progress_names_each_document_once_and_a_long_one_pulses(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", a="One.", long="A sentence here. " * 400)
    done: list[str] = []
    pulses: list[tuple[str, float]] = []
    ingest(
        folder,
        tmp_path / "index",
        CHUNKING,
        CountingEmbedder(),
        WordTokenizer(),
        done.append,
        pulse=lambda doc, share: pulses.append((doc, share)),
    )
    assert sorted(done) == ["a.md", "long.md"]
    assert {doc for doc, _ in pulses} == {"long.md"}
    shares = [share for _, share in pulses]
    assert len(shares) > 3
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda folder, out: run(folder, out, CountingEmbedder("other/4")),
            "embedder counting/4; expected other/4",
        ),
        (
            lambda folder, out: ingest(
                folder,
                out,
                ChunkingSettings(size_tokens=32, overlap_tokens=6),
                CountingEmbedder(),
                WordTokenizer(),
            ),
            "chunking.size_tokens = 24; expected 32",
        ),
        (lambda folder, out: run(shutil.copytree(folder, out.parent / "b"), out), "source .*docs; expected .*b"),
    ],
    ids=["embedder", "chunks", "folder"],
)
def test_an_index_made_in_another_way_is_left_alone(
    make: Callable[[Path, Path], object], message: str, tmp_path: Path
) -> None:
    folder, out = write(tmp_path / "docs", a="One."), tmp_path / "index"
    run(folder, out)
    with pytest.raises(BadInput, match=f"made with {message}; choose another --index or remove the folder"):
        make(folder, out)
    assert texts_of(out) == {"a.md": "One."}


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", a="One.")
    with pytest.raises(BadInput, match="holds something else; expected an index or a new folder; choose another"):
        run(folder, write(tmp_path / "mine", diary="Dear"))
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["diary.md"]


def test_two_at_once_on_one_index_are_refused(tmp_path: Path) -> None:
    folder, out = write(tmp_path / "docs", a="One."), tmp_path / "index"
    run(folder, out)
    with FileLock(out / ".lock"), pytest.raises(BadInput, match="another ingest is writing to it"):
        run(folder, out)


def test_when_the_embedder_goes_away_what_was_done_stays(small_commits: None, tmp_path: Path) -> None:
    folder, out = write(tmp_path / "docs", a="One.", b="Two.", c="Three."), tmp_path / "index"
    with pytest.raises(Unreachable):
        run(folder, out, CountingEmbedder(fail_after=3))
    assert texts_of(out) == {"a.md": "One."}
    assert sorted(path.name for path in (out / "segments").iterdir()) == ["000001"]
    embed = CountingEmbedder()
    assert run(folder, out, embed).unchanged == 1
    assert embed.texts == 4


def test_when_the_embedder_fails_at_once_no_folder_is_left(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", a="One.")
    with pytest.raises(Unreachable):
        run(folder, tmp_path / "index", CountingEmbedder(fail_after=0))
    assert not (tmp_path / "index").exists()


def test_damaged_segments_are_made_anew_and_a_torn_journal_line_is_cut_off(
    small_commits: None, tmp_path: Path
) -> None:
    folder, out = write(tmp_path / "docs", a="One.", b="Two.", c="Three."), tmp_path / "index"
    run(folder, out)
    vectors = out / "segments" / "000002" / "chunk_vectors.npy"
    vectors.write_bytes(vectors.read_bytes()[:-4])
    with (out / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"segment":"0000')
    (out / "segments" / ".partial-000004").mkdir()
    with pytest.raises(BadInput, match=r"chunk_vectors.npy: damaged"):
        Index.open(out, "counting/4")
    report = run(folder, out)
    assert (report.written, report.unchanged) == (1, 2)
    assert texts_of(out) == {"a.md": "One.", "b.md": "Two.", "c.md": "Three."}
    assert sorted(path.name for path in (out / "segments").iterdir()) == ["000001", "000003", "000004"]


def test_given_documents_need_no_files(tmp_path: Path) -> None:
    documents = [FileDocument("b", "B", "Two."), FileDocument("a", "A", "One."), FileDocument("empty", "", " ")]
    report = ingest(documents, tmp_path / "index", CHUNKING, CountingEmbedder(), WordTokenizer())
    assert texts_of(tmp_path / "index") == {"a": "One.", "b": "Two."}
    assert [refused.doc for refused in report.refused] == ["empty"]
