"""The compiler: what is kept of passages within a budget, and what holds whatever comes in."""

import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ragclinic.context import Compiled, Passage, compile_context, estimate_tokens, split
from ragclinic.errors import BadInput

SENTENCES = [
    "The prefix cache keeps the start of every prompt.",
    "It needs the same tokens in the same order.",
    "前缀缓存只认相同的开头。",
    "它按块比较。",
    "A slot holds 512 tokens.",
    "# Heading",
    "- an item",
    "| a | b |",
    "مرحبا بالعالم.",
    "👨‍👩‍👧 is a family.",
    "x = cache.get(key)",
    "word " * 150,
    "...",
]
TEXTS = st.lists(st.sampled_from(SENTENCES), max_size=6).map("\n".join)
PASSAGES = st.lists(
    st.builds(
        Passage,
        id=st.sampled_from("abc"),
        text=st.one_of(TEXTS, st.text(max_size=40)),
        doc=st.sampled_from([None, "one", "two"]),
        start=st.one_of(st.none(), st.integers(-5, 400)),
        score=st.one_of(st.none(), st.floats()),
    ),
    max_size=5,
)
QUESTIONS = st.sampled_from(["How many tokens does the prefix cache keep?", "前缀缓存比较什么？", "", " ?! ", "x"])


def words(text: str) -> int:
    return len(text.split())


def fake_embed(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.array([[len(text), text.count("e") + 1, text.count("存")] for text in texts], np.float32)


def compiled(question: str, texts: Sequence[str], budget: int | None) -> Compiled:
    return compile_context(
        question, [Passage(str(i), text) for i, text in enumerate(texts)], budget_tokens=budget, count=words
    )


@given(QUESTIONS, PASSAGES, st.integers(0, 120), st.booleans(), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=150)
def test_whatever_comes_in_the_text_is_in_order_from_the_input_and_within_the_budget(
    question: str, passages: list[Passage], budget: int, dense: bool, deduplicate: bool, merge: bool
) -> None:
    def once() -> Compiled:
        return compile_context(
            question,
            passages,
            budget_tokens=budget,
            count=estimate_tokens,
            embed=fake_embed if dense else None,
            deduplicate=deduplicate,
            merge_overlap=merge,
        )

    result = once()
    assert result == once(), "not deterministic"
    assert result.tokens_out == estimate_tokens(result.text) <= budget
    at = 0
    for span in result.kept:
        text = passages[span.passage].text[span.start : span.end]
        at = result.text.index(text, at) + len(text)
    for number in range(len(passages)):
        spans = sorted(span[1:3] for span in result.kept if span.passage == number)
        assert all(left[1] <= right[0] for left, right in pairwise(spans))
    for one, other in pairwise(result.sentences):
        assert (one.passage, one.start, one.end) < (other.passage, other.start, other.end)
    if deduplicate:
        # Only what no line break could be inside of: a sentence of a merged text may end at another place.
        kept = [passages[s.passage].text[s.start : s.end].casefold() for s in result.sentences if s.kept]
        whole = [text for text in kept if text in {s.casefold() for s in SENTENCES}]
        assert len(whole) == len(set(whole))


@given(QUESTIONS, PASSAGES, st.integers(0, 150), st.integers(0, 150), st.booleans())
@settings(deadline=None, max_examples=150)
def test_a_larger_budget_never_drops_what_a_smaller_one_kept(
    question: str, passages: list[Passage], one: int, other: int, dense: bool
) -> None:
    small, large = (
        {
            (s.passage, s.start, s.end)
            for s in compile_context(
                question,
                passages,
                budget_tokens=budget,
                count=estimate_tokens,
                embed=fake_embed if dense else None,
            ).sentences
            if s.kept
        }
        for budget in sorted((one, other))
    )
    assert small <= large


def test_the_sentence_that_answers_is_kept_in_both_languages() -> None:
    texts = [
        "Dogs bark at night. Cats sleep all day long. Paris is the capital of France. Bread is made of flour.",
        "狗在夜里叫。猫整天睡觉。上海是中国最大的城市。面包是用面粉做的。",
    ]
    assert compiled("What is the capital of France?", texts, 6).text == "Paris is the capital of France."
    assert compiled("中国最大的城市是哪个？", texts, 1).text == "上海是中国最大的城市。"


def test_vectors_decide_where_words_cannot() -> None:
    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[1.0, 0.0] if "feline" in t or "cat" in t else [0.0, 1.0] for t in texts], np.float32)

    passages = [Passage("1", "Dogs bark at night. A feline animal sleeps. Bread is old.")]
    result = compile_context("Where is my cat?", passages, budget_tokens=4, count=words, embed=embed)
    assert result.text == "A feline animal sleeps."


def test_overlapping_chunks_become_one_piece_and_a_cut_sentence_is_whole_again() -> None:
    text = "The first sentence stands here. The second one is cut by the chunk's edge. The third one ends it."
    cut = text.index("edge")
    start = text.index("The second")
    passages = [Passage("b", text[start:], "d", start), Passage("a", text[:cut], "d", 0)]
    result = compile_context("?", passages, budget_tokens=None, count=words)
    assert result.pieces == ((text, 0),)
    assert [s.why for s in result.sentences] == ["kept", "kept", "kept", "overlap"]
    assert result.sentences[3].twin == 0
    assert result.tokens_in > result.tokens_out == words(text)


def test_lying_offsets_change_nothing_but_the_order() -> None:
    one, other = "Alpha stands alone here.", "Omega is somewhere else."
    lying = [Passage("1", one, "d", 5), Passage("2", other, "d", 2)]
    result = compile_context("?", lying, budget_tokens=None, count=words)
    assert result.pieces == ((other, 1), (one, 0))


def test_duplicates_across_passages_come_once_and_say_what_they_repeat() -> None:
    same = "The cache holds four thousand tokens."
    result = compiled("How many?", [f"So. {same} One more.", f"Before it. {same}"], None)
    assert result.text.count(same) == 1
    assert [(s.why, s.twin) for s in result.sentences] == [
        ("kept", None),
        ("kept", None),
        ("kept", None),
        ("kept", None),
        ("duplicate", 1),
    ]


def test_without_deduplication_and_merging_everything_stays() -> None:
    passages = [Passage("1", "The same sentence."), Passage("2", "The same sentence.")]
    result = compile_context(
        "?", passages, budget_tokens=None, count=words, deduplicate=False, merge_overlap=False
    )
    assert result.text == "The same sentence.\n\nThe same sentence."


def test_the_heading_over_a_kept_sentence_and_the_one_before_a_pronoun_come_along() -> None:
    text = "# Retention\n\nBackups run. Logs are kept in the vault. They expire after 30 days. Coffee is free."
    result = compiled("When do they expire after 30 days?", [text], 13)
    assert result.text == "# Retention\nLogs are kept in the vault. They expire after 30 days."


def test_documents_are_read_in_their_own_order_and_first_retrieved_first() -> None:
    passages = [
        Passage("b2", "Beta two.", "b", 900),
        Passage("a1", "Alpha one.", "a", 0),
        Passage("b1", "Beta one.", "b", 100),
    ]
    assert compile_context("?", passages, budget_tokens=None, count=words).pieces == (
        ("Beta one.", 2),
        ("Beta two.", 0),
        ("Alpha one.", 1),
    )


def test_mass_is_the_share_of_score_kept() -> None:
    texts = ["The cache holds tokens. Dogs bark. Cats sleep."]
    assert compiled("What does the cache hold?", texts, None).mass == 1.0
    assert 0.3 < compiled("What does the cache hold?", texts, 4).mass < 1.0
    assert compiled("What does the cache hold?", texts, 0).mass == 0.0
    assert compiled("?", [], 0).mass == 1.0


@pytest.mark.parametrize("texts", [[], [""], ["  \n "]])
def test_nothing_in_gives_nothing_out(texts: list[str]) -> None:
    result = compiled("What?", texts, 100)
    assert (result.text, result.pieces, result.kept, result.sentences, result.tokens_out) == ("", (), (), (), 0)


def test_a_budget_of_zero_keeps_nothing_and_asks_no_embedder() -> None:
    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        raise AssertionError

    result = compile_context("?", [Passage("1", "A sentence.")], budget_tokens=0, count=words, embed=embed)
    assert (result.text, result.sentences[0].why) == ("", "below the cut")


def test_a_budget_for_all_asks_no_embedder_and_keeps_all() -> None:
    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        raise AssertionError

    passages = [Passage("1", "A sentence. Another one.")]
    assert compile_context("?", passages, budget_tokens=99, count=words, embed=embed).text == passages[0].text


def test_an_empty_question_keeps_sentences_all_the_same() -> None:
    assert compiled("", ["One sentence here. Two sentences here."], 3).text == "One sentence here."


def test_a_giant_sentence_is_kept_in_part() -> None:
    giant = "word " * 4000 + "needle " + "word " * 4000
    result = compiled("Where is the needle?", [giant], 300)
    assert "needle" in result.text
    assert result.tokens_out <= 300


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^budget_tokens: -1; expected 0 or more, or None"):
        compiled("?", ["Text."], -1)


@pytest.mark.parametrize("rows", [np.zeros((1, 3)), np.zeros(3), np.full((3, 2), np.nan)])
def test_an_embedder_that_gives_something_else_is_refused(rows: NDArray[np.float32]) -> None:
    passages = [Passage("1", "One sentence here. Another one there.")]
    with pytest.raises(BadInput, match=r"^embed: .* for 3 texts; expected one row of finite numbers"):
        compile_context("?", passages, budget_tokens=3, count=words, embed=lambda _: rows)


def test_text_outside_prose_is_kept_to_the_letter() -> None:
    code, table = '```py\nvalue = cache["key"]\nprint(value)\n```', "| a | b |\n|---|---|\n| 1 | 2 |"
    text = f"Use it so:\n\n{code}\n\n{table}\n\n👨‍👩‍👧 مرحبا"
    assert compiled("?", [text], None).text == text


def test_every_sentence_is_judged() -> None:
    text = "One sentence here. Two sentences here. 三句话。"
    result = compiled("two", [text], 3)
    assert [(s.start, s.end) for s in result.sentences] == split(text)
    assert [s.kept for s in result.sentences] == [False, True, False]


def test_ten_thousand_chunks_take_seconds() -> None:
    passages = [
        Passage(
            str(i), f"Chunk {i} says that value {i * 7} belongs to key {i}. It has two sentences.", "d", i * 60
        )
        for i in range(10_000)
    ]
    begin = time.process_time()
    result = compile_context("Which value belongs to key 4321?", passages, budget_tokens=60, count=words)
    assert f"value {4321 * 7} belongs to key 4321" in result.text
    assert time.process_time() - begin < 20
