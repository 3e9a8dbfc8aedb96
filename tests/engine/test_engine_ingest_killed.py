"""An ingest that is killed at any moment goes on, and ends with the index that it would have made at once."""

import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from ragclinic.engine.index import Index

INGEST = """
import sys, time, zlib
from pathlib import Path
import numpy as np
from ragclinic.engine import ingest as module
from ragclinic.engine.settings import ChunkingSettings
from ragclinic.engine.word_tokenizer import WordTokenizer

folder, out, asked, delay_s = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4])
module._COMMIT_CHARS, module._COMMIT_SHARE = 1500, 0.0

class Embedder:
    identity = "crc/8"

    def __call__(self, texts):
        time.sleep(delay_s)
        with asked.open("a") as log:
            log.writelines(f"{zlib.crc32(text.encode())}\\n" for text in texts)
        rows = [np.random.default_rng(zlib.crc32(text.encode())).normal(size=8) for text in texts]
        vectors = np.array(rows, np.float32).reshape(-1, 8)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

module.ingest(folder, out, ChunkingSettings(size_tokens=32, overlap_tokens=8), Embedder(), WordTokenizer())
"""
FILES = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for number in range(FILES):
        text = f"Page {number}. Valve {number} opens at {number * 7} bar. 第 {number} 页。阀门 {number} 打开。\n\n"
        (folder / f"page{number:02d}.md").write_text(text * 8, "utf-8")
    return folder


def start(folder: Path, out: Path, asked: Path, delay_s: float = 0.0) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", INGEST, str(folder), str(out), str(asked), str(delay_s)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def uninterrupted(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "index"
    assert start(folder, out, out.parent / "asked").wait(60) == 0
    return out


def commits(out: Path) -> int:
    journal = out / "journal.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def contents(out: Path) -> list[tuple[object, ...]]:
    """All that an index answers with, in a form that can be compared."""
    index = Index.open(out, "crc/8")
    vector = np.ones(8, np.float32) / np.sqrt(8)
    rows: list[tuple[object, ...]] = [(index.state, len(index))]
    rows += [(hit.chunk, hit.score) for hit in index.search(vector, 9999)]
    for doc, title in index.documents().items():
        spans, vectors = index.sentences(doc)
        rows.append((doc, title, index.text(doc), spans.tolist(), vectors.tobytes()))
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(("kill_at", "how"), [(1, signal.SIGKILL), (4, signal.SIGKILL), (2, signal.SIGINT)])
def test_killed_and_begun_again_it_makes_the_same_index(
    kill_at: int, how: signal.Signals, folder: Path, uninterrupted: Path, tmp_path: Path
) -> None:
    out, asked = tmp_path / "index", tmp_path / "asked"
    process = start(folder, out, asked, delay_s=0.05)
    deadline = time.monotonic() + 60
    while commits(out) < kill_at and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.03)  # somewhere inside the next commit
    os.kill(process.pid, how)
    process.wait(30)

    halfway = Index.open(out, "crc/8")  # what was committed answers
    assert 0 < len(halfway.documents()) < FILES
    every = halfway.search(np.ones(8, np.float32), len(halfway))
    chunks_done = {zlib.crc32(hit.chunk.text.encode()) for hit in every}
    asked.unlink()
    assert start(folder, out, asked).wait(60) == 0
    assert contents(out) == contents(uninterrupted)
    assert not chunks_done & {int(line) for line in asked.read_text().split()}  # what is done is not done again
    assert {path.name for path in out.iterdir()} <= {"meta.json", "journal.jsonl", "segments", ".lock"}
    assert not [path for path in (out / "segments").iterdir() if path.name.startswith(".")]


@pytest.mark.slow
def test_killed_before_its_first_commit_it_simply_begins_again(
    folder: Path, uninterrupted: Path, tmp_path: Path
) -> None:
    out, asked = tmp_path / "index", tmp_path / "asked"
    process = start(folder, out, asked, delay_s=0.5)
    deadline = time.monotonic() + 60
    while not (out / "meta.json").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    assert commits(out) == 0
    assert start(folder, out, asked).wait(60) == 0
    assert contents(out) == contents(uninterrupted)
