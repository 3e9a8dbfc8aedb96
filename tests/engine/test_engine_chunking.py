"""Chunks hold the whole document, keep their sizes, and never cut a character."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragclinic.engine import chunking
from ragclinic.engine.chunking import ChunkRecord, cut
from ragclinic.engine.settings import ChunkingSettings
from ragclinic.engine.word_tokenizer import WordTokenizer
from ragclinic.errors import BadInput

FAMILY = "👨‍👩‍👧‍👦"
PIECES = st.sampled_from(
    [
        "word ",
        "longer-word ",
        "x",
        " ",
        "\n\n",
        "\r\n",
        "1984 ",
        "你好",
        "，",
        "世界。",
        FAMILY,
        "👍🏽",
        "🇨🇳",
        "e\u0301",
        "ไทย ",
    ]
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=150).map("".join))


class ByteTokenizer:
    """Two bytes a token, so that nearly every token ends inside a Chinese character or an emoji."""

    identity = "bytes"

    def encode(self, text: str) -> list[int]:
        data = text.encode("utf-8", "replace")
        return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        owner = [i for i, char in enumerate(text) for _ in char.encode("utf-8", "replace")]
        return [(owner[i], owner[min(i + 1, len(owner) - 1)] + 1) for i in range(0, len(owner), 2)]


TOKENIZERS = st.sampled_from([ByteTokenizer(), WordTokenizer()])


def chunks_of(text: str, size: int = 16, overlap: int = 4, tokenizer: object = None) -> list[ChunkRecord]:
    chosen = tokenizer if isinstance(tokenizer, ByteTokenizer) else WordTokenizer()
    return list(cut("doc", text, ChunkingSettings(size_tokens=size, overlap_tokens=overlap), chosen))


@settings(deadline=None)
@given(text=TEXTS, size=st.integers(16, 40), overlap=st.integers(0, 15), tokenizer=TOKENIZERS)
def test_chunks_hold_every_visible_character_and_say_where_it_stood(
    text: str, size: int, overlap: int, tokenizer: object
) -> None:
    chunks = chunks_of(text, size, overlap, tokenizer)
    assert all(text[c.start : c.end] == c.text for c in chunks)
    held = {at for c in chunks for at in range(c.start, c.end)}
    assert {at for at, char in enumerate(text) if not char.isspace()} <= held


@settings(deadline=None)
@given(text=TEXTS, size=st.integers(16, 40), overlap=st.integers(0, 15))
def test_no_chunk_has_more_tokens_than_asked_and_each_says_how_many(text: str, size: int, overlap: int) -> None:
    for tokenizer in (ByteTokenizer(), WordTokenizer()):
        for chunk in chunks_of(text, size, overlap, tokenizer):
            assert chunk.tokens == len(tokenizer.encode(chunk.text)) <= size


@settings(deadline=None)
@given(text=TEXTS, overlap=st.integers(0, 15), tokenizer=TOKENIZERS)
def test_neighbours_share_at_most_the_overlap_and_both_begin_and_end_later(
    text: str, overlap: int, tokenizer: object
) -> None:
    chunks = chunks_of(text, 16, overlap, tokenizer)
    counted = tokenizer if isinstance(tokenizer, ByteTokenizer) else WordTokenizer()
    for left, right in pairwise(chunks):
        assert left.start < right.start
        assert left.end < right.end
        whole_text = [span for span in counted.offsets(text) if span[0] < left.end and span[1] > right.start]
        assert right.start >= left.end or len(whole_text) <= max(overlap, 1)


def test_neighbours_share_exactly_the_overlap_where_words_allow() -> None:
    text = " ".join(f"w{i:03d}" for i in range(100))  # each word is two tokens or more
    chunks = chunks_of(text, 20, 8)
    shared = [len(WordTokenizer().encode(text[b.start : a.end])) for a, b in pairwise(chunks)]
    assert shared
    assert all(tokens == 8 for tokens in shared)


@pytest.mark.parametrize("character", [FAMILY, "👍🏽", "🇨🇳", "e\u0301", "नि"], ids=ascii)
@pytest.mark.parametrize("overlap", [0, 5])
def test_a_character_made_of_several_code_points_is_never_cut(character: str, overlap: int) -> None:
    text = f"{character} " * 60
    for chunk in chunks_of(text, 16, overlap, ByteTokenizer()):
        assert set(chunk.text.split(" ")) <= {character}


def test_a_run_of_accents_longer_than_a_chunk_does_not_stop_it() -> None:
    text = "z" + "\u0301" * 500 + " end"
    chunks = chunks_of(text, 16, 4, ByteTokenizer())
    assert chunks[-1].text.endswith("end")
    assert all(c.tokens <= 16 for c in chunks)


def test_a_chunk_keeps_its_id_until_its_text_place_or_document_changes() -> None:
    text = "One two three. " * 20
    first, again = chunks_of(text), chunks_of(text)
    assert [c.chunk_id for c in first] == [c.chunk_id for c in again]
    assert len({c.chunk_id for c in first}) == len(first)  # equal texts at other places are other chunks
    other = list(cut("other", text, ChunkingSettings(size_tokens=16, overlap_tokens=4), WordTokenizer()))
    assert not {c.chunk_id for c in first} & {c.chunk_id for c in other}


def test_a_long_text_is_cut_as_if_it_were_tokenised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Readers wait, and writers hurry; nobody knows why 10 of 12 come late. 你好，世界。" * 60
    at_once = chunks_of(text, 50, 10)
    monkeypatch.setattr(chunking, "_BLOCK_CHARS", 97)
    assert chunks_of(text, 50, 10) == at_once


def test_an_overlap_as_large_as_the_chunk_is_refused() -> None:
    with pytest.raises(BadInput, match=r"overlap_tokens = 16: expected less than chunking.size_tokens = 16"):
        chunks_of("text", 16, 16)


def test_nothing_but_white_space_has_no_chunks() -> None:
    assert chunks_of(" \n\t ") == []
