"""An index finds what was put into it, remembers its sentences, and names what is wrong with it."""

import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ragclinic.context import sentence_texts, split
from ragclinic.engine.documents import FileDocument
from ragclinic.engine.embed import Vectors
from ragclinic.engine.index import Index
from ragclinic.engine.ingest import ingest
from ragclinic.engine.settings import ChunkingSettings
from ragclinic.engine.word_tokenizer import WordTokenizer
from ragclinic.errors import BadInput

DIM = 256
CHUNKING = ChunkingSettings(size_tokens=24, overlap_tokens=6)
TEXTS = {
    "valves.md": "The valve opens at 40 bar. It closes at 20 bar.\nNobody may stand below it. " * 3,
    "pumps.md": "The pump needs oil twice a year. Its bearing is sealed. " * 3 + "Call the workshop on Monday.",
    "水泵.md": "水泵每年加油两次。轴承是密封的。请在周一联系车间。" * 3,
}


class WordEmbedder:
    """Texts with the same words are near each other; what it is asked for is kept."""

    def __init__(self, identity: str = f"words/{DIM}") -> None:
        self.identity = identity
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str], /) -> Vectors:
        self.asked += texts
        vectors = np.full((len(texts), DIM), 1e-3, np.float32)
        for row, text in enumerate(texts):
            words = text.split() if text.isascii() else list(text)
            for word in words:
                vectors[row, zlib.crc32(word.encode()) % DIM] += 1
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


def make_index(folder: Path, texts: dict[str, str] = TEXTS) -> Path:
    """An index of these texts."""
    documents = [FileDocument(doc, doc.split(".")[0], text) for doc, text in texts.items()]
    ingest(documents, folder, CHUNKING, WordEmbedder(), WordTokenizer())
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_index(tmp_path_factory.mktemp("made") / "index")


@pytest.fixture
def index(made: Path) -> Index:
    return Index.open(made, WordEmbedder().identity)


@pytest.mark.parametrize(
    ("question", "doc"), [("valve opens bar", "valves.md"), ("pump oil", "pumps.md"), ("水泵加油", "水泵.md")]
)
def test_the_nearest_chunk_comes_first_with_its_place_in_the_document(
    question: str, doc: str, index: Index
) -> None:
    hits = index.search(WordEmbedder()([question])[0], 4)
    assert hits[0].chunk.doc == doc
    assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    for hit in hits:
        assert index.text(hit.chunk.doc)[hit.chunk.start : hit.chunk.end] == hit.chunk.text
        assert hit.chunk.tokens == len(WordTokenizer().encode(hit.chunk.text))
        assert hit.score == pytest.approx(
            float(WordEmbedder()([question])[0] @ WordEmbedder()([hit.chunk.text])[0])
        )


def test_more_chunks_than_there_are_give_all(index: Index) -> None:
    hits = index.search(WordEmbedder()(["valve"])[0], 999)
    assert len(hits) == len(index) == len({h.chunk.chunk_id for h in hits})


def test_with_a_pool_the_best_sentence_counts_as_much_as_the_chunk(index: Index) -> None:
    embed = WordEmbedder()
    question = embed(["workshop on Monday."])[0]
    best = index.search(question, 1, pool=len(index))[0]
    assert "workshop on Monday." in best.chunk.text
    sentences = index.sentences(best.chunk.doc, best.chunk.start, best.chunk.end).vectors.astype(np.float32)
    expected = (float(embed([best.chunk.text])[0] @ question) + float((sentences @ question).max())) / 2
    assert best.score == pytest.approx(expected, abs=1e-3)


def test_each_document_has_its_sentences_with_their_vectors(index: Index) -> None:
    for doc in TEXTS:
        sentences = index.sentences(doc)
        assert [tuple(span) for span in sentences.spans.tolist()] == split(index.text(doc))
        expected = WordEmbedder()(sentence_texts(index.text(doc)))
        np.testing.assert_allclose(sentences.vectors.astype(np.float32), expected, atol=1e-3)


def test_sentences_between_two_offsets_are_those_that_touch_them(index: Index) -> None:
    spans = index.sentences("valves.md").spans
    start, end = int(spans[1][0]) + 3, int(spans[3][0]) + 1
    np.testing.assert_array_equal(index.sentences("valves.md", start, end).spans, spans[1:4])
    assert len(index.sentences("valves.md", int(spans[1][1]), int(spans[1][1])).spans) == 0


def test_every_sentence_of_every_chunk_is_remembered_and_only_others_are_embedded(index: Index) -> None:
    embed = WordEmbedder()
    recall = index.remembering(embed)
    for hit in index.search(embed(["valve"])[0], 999):
        embed.asked.clear()
        texts = sentence_texts(hit.chunk.text)
        np.testing.assert_allclose(recall(texts), WordEmbedder()(texts), atol=1e-3)
        assert embed.asked == []
    mixed = [sentence_texts(TEXTS["pumps.md"])[0], "never seen", "nor this"]
    np.testing.assert_allclose(recall(mixed), WordEmbedder()(mixed), atol=1e-3)
    assert embed.asked == ["never seen", "nor this"]
    assert recall([]).shape == (0, DIM)


def test_titles_are_kept(index: Index) -> None:
    assert index.documents() == {doc: doc.split(".")[0] for doc in TEXTS}


def test_the_state_follows_the_content_and_nothing_else(made: Path, tmp_path: Path) -> None:
    state = Index.open(made, f"words/{DIM}").state
    assert Index.open(make_index(tmp_path / "same"), f"words/{DIM}").state == state
    changed = {**TEXTS, "pumps.md": "The pump is gone."}
    assert Index.open(make_index(tmp_path / "other", changed), f"words/{DIM}").state != state


def test_an_index_of_another_embedder_names_both_and_what_to_do(made: Path) -> None:
    with pytest.raises(BadInput) as caught:
        Index.open(made, "use-multilingual/512")
    assert str(caught.value) == (
        f"{made}: made with embedder words/{DIM}; expected use-multilingual/512; "
        "set embedder.model to the first, or ingest again into another folder"
    )


FILES = (
    "documents.parquet",
    "chunks.parquet",
    "chunk_vectors.npy",
    "sentence_spans.npy",
    "sentence_keys.npy",
    "sentence_vectors.npy",
)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", ["cut off", "one byte", "removed", "empty"])
def test_a_damaged_segment_is_named_with_what_to_do(name: str, harm: str, made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "index")
    path = folder / "segments" / "000001" / name
    data = bytearray(path.read_bytes())
    if harm == "removed":
        path.unlink()
    elif harm == "one byte":
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    else:
        path.write_bytes(data[: len(data) // 2] if harm == "cut off" else b"")
    with pytest.raises(BadInput) as caught:
        Index.open(folder, f"words/{DIM}")
    assert str(caught.value).startswith(f"{path}: ")
    assert "run the same ragclinic ingest again: it makes damaged segments anew" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("meta.json", "{", "meta.json: cannot be read (Expecting property name"),
        (
            "meta.json",
            '{"schema_version": 99}',
            "meta.json: schema 99; expected 1; remove the folder and ingest again",
        ),
        ("meta.json", '{"schema_version": 1, "colour": 2}', "meta.json: cannot be read ("),
        ("journal.jsonl", '{"removed": []}\n{"segm\n', "journal.jsonl: line 2 cannot be read; expected"),
        ("journal.jsonl", '{"segment": 3, "files": 4, "documents": 5}\n', "journal.jsonl: line 1 cannot be read"),
        ("journal.jsonl", "", "index: no documents in it; expected some; run ragclinic ingest again"),
    ],
)
def test_a_damaged_description_is_named(name: str, content: str, message: str, made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "index")
    (folder / name).write_text(content)
    with pytest.raises(BadInput) as caught:
        Index.open(folder, f"words/{DIM}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_an_index_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        Index.open(tmp_path, f"words/{DIM}")
    assert str(caught.value) == (
        f"{tmp_path}: no meta.json there; expected an index; make one: ragclinic ingest FOLDER --index {tmp_path}"
    )
