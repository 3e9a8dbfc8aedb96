"""Shingles and their similarity, and the overlaps of neighbouring chunks."""

from hypothesis import given
from hypothesis import strategies as st

from ragclinic.context import Passage, jaccard, mean_pairwise_jaccard, overlap_tokens, shingles
from ragclinic.context.overlaps import MIN_CHARS, Overlap, border, overlaps

CHUNK = "The first chunk of a document ends in the middle of a sentence that goes on"
NEXT = "in the middle of a sentence that goes on for a while and then it stops at last."


def words(text: str) -> int:
    return len(text.split())


def test_english_shingles_are_pairs_of_words_without_case_and_punctuation() -> None:
    assert shingles("The cat, THE Cat sat!") == {"the cat", "cat the", "cat sat"}


def test_chinese_shingles_are_pairs_of_characters() -> None:
    assert shingles("北京大学，北京。") == {"北京", "京大", "大学"}


def test_mixed_text_has_both_and_what_stands_alone_stands_for_itself() -> None:
    assert shingles("使用Python写 code now") == {"使用", "python", "写", "code now"}
    assert shingles("Word") == {"word"}
    assert shingles(" .,!? ") == frozenset()


def test_full_width_letters_are_the_same_letters() -> None:
    assert shingles("ＫＶ　cache") == shingles("KV cache")


@given(st.text(), st.text())
def test_jaccard_is_symmetric_between_0_and_1_and_1_for_the_same_words(one: str, other: str) -> None:
    left, right = shingles(one), shingles(other)
    assert jaccard(left, right) == jaccard(right, left)
    assert 0.0 <= jaccard(left, right) <= 1.0
    assert jaccard(left, left) == (1.0 if left else 0.0)


def test_mean_pairwise_jaccard_is_zero_without_a_pair_and_the_mean_of_all_pairs() -> None:
    a, b, c = shingles("one two three"), shingles("one two four"), shingles("x y z")
    assert mean_pairwise_jaccard([]) == 0.0
    assert mean_pairwise_jaccard([a]) == 0.0
    assert mean_pairwise_jaccard([a, a]) == 1.0
    assert mean_pairwise_jaccard([a, b, c]) == jaccard(a, b) / 3


def test_offsets_give_the_overlap_where_the_texts_agree() -> None:
    text = CHUNK + " for a while and then it stops at last."
    start = text.index("in the middle")
    passages = [Passage("2", text[start:], "doc", start), Passage("1", CHUNK, "doc", 0)]
    assert overlaps(passages) == [Overlap(1, 0, start, len(CHUNK) - start)]
    assert overlap_tokens(passages, words) == words("in the middle of a sentence that goes on")


def test_lying_offsets_are_not_believed_and_the_texts_decide() -> None:
    lying = [Passage("1", CHUNK, "doc", 0), Passage("2", NEXT, "doc", 7)]
    assert overlaps(lying) == [
        Overlap(0, 1, CHUNK.index("in the middle"), len("in the middle of a sentence that goes on"))
    ]
    disjoint = [
        Passage("1", "Nothing in common here at all.", "doc", 0),
        Passage("2", "Entirely other words.", "doc", 9),
    ]
    assert overlaps(disjoint) == []


def test_without_offsets_the_longest_common_border_counts_whichever_comes_first() -> None:
    expected = len("in the middle of a sentence that goes on")
    assert overlaps([Passage("1", CHUNK), Passage("2", NEXT)])[0][:2] == (0, 1)
    assert overlaps([Passage("2", NEXT), Passage("1", CHUNK)])[0][:2] == (1, 0)
    assert overlaps([Passage("1", CHUNK), Passage("2", NEXT)])[0].chars == expected


def test_chinese_borders_and_contained_passages_are_found() -> None:
    passages = [
        Passage("1", "前缀缓存只在提示词的开头相同时才有用，所以顺序要稳定。"),
        Passage("2", "提示词的开头相同时才有用，所以顺序要稳定"),
    ]
    assert overlaps(passages) == [Overlap(0, 1, 6, len(passages[1].text))]


def test_different_documents_repeat_each_other_but_do_not_overlap() -> None:
    assert overlaps([Passage("1", CHUNK, "one"), Passage("2", NEXT, "two")]) == []


def test_a_chain_of_chunks_counts_each_overlap_once() -> None:
    text = " ".join(f"word{i}" for i in range(300))
    size, step = 600, 450
    passages = [Passage(str(at), text[at : at + size], "doc", at) for at in range(0, len(text) - size, step)]
    repeated = sum(words(text[p.start or 0 : (p.start or 0) + size - step]) for p in passages[1:])
    assert overlap_tokens(passages, words) == repeated


def test_the_same_passage_twice_repeats_all_of_it() -> None:
    assert overlap_tokens([Passage("1", CHUNK), Passage("1", CHUNK)], words) == words(CHUNK)


@given(st.text("ab", max_size=60), st.text("ab", max_size=60), st.text("ab", max_size=60))
def test_a_border_is_the_longest_end_of_one_that_begins_the_other(head: str, common: str, tail: str) -> None:
    one, other = head + common, common + tail
    longest = max(n for n in range(min(len(one), len(other)) + 1) if one.endswith(other[:n]))
    assert border(one, other) == (longest if longest >= MIN_CHARS else 0)


def test_the_border_of_repetitive_text_takes_linear_time() -> None:
    assert border("ab" * 50_000 + "c" + "ab" * 50_000, "ab" * 50_000 + "d") == 100_000
    assert border("a" * 100_000 + "b", "a" * 100_000) == 0


def test_many_passages_without_offsets_are_compared_with_their_neighbours() -> None:
    text = "".join(f"sentence number {i} says something. " for i in range(2000))
    passages = [Passage(str(at), text[at : at + 400]) for at in range(0, len(text), 300)]
    assert len(overlaps(passages)) == len(passages) - 1
