"""What a sentence leans on, and what need not be said twice."""

import pytest

from ragclinic.context.duplicates import twins
from ragclinic.context.leads import leads
from ragclinic.context.prepared import content_of, sentences_of

LONG = "The cache keeps the prefix of every prompt in memory until the memory is needed for another request"

ZH = "前缀缓存会把每个提示词开头的计算结果都留在显存里，直到别的请求需要这块显存为止。"


def test_a_pronoun_leans_on_the_sentence_before_in_both_languages() -> None:
    assert leads(sentences_of("Alice met Bob. She greeted him. Rain fell.")) == [(), (0,), ()]
    assert leads(sentences_of("缓存很小。它常常不够用。模型很大。")) == [(), (0,), ()]


def test_everything_leans_on_the_heading_over_it() -> None:
    assert leads(sentences_of("# One\n\nFirst. Second.\n\n# Two\n\nThird.")) == [(), (0,), (0,), (), (3,)]


def test_code_rows_and_items_lean_on_the_line_that_introduces_them() -> None:
    text = "# Title\n\nText. It is the same as:\n\n```\nx = 1\n```\n\n- one\n- two\n\nMore text."
    assert leads(sentences_of(text)) == [(), (0,), (1, 0), (2, 0), (2, 0), (2, 0), (0,)]


def duplicates(*texts: str) -> list[int | None]:
    return twins([content_of(text) for text in texts])


def test_the_same_sentence_in_other_case_and_spacing_is_a_duplicate() -> None:
    assert duplicates("A cat  sat.", "Another.", "a Cat\nsat.", "A dog sat.") == [None, None, 0, None]


def test_a_sentence_without_a_word_of_its_own_is_a_near_duplicate() -> None:
    assert duplicates(f"{LONG}.", f"{LONG.replace('The cache', 'This cache')}!") == [None, 0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{LONG} of 30 users.", f"{LONG} of 31 users."),
        (f"{LONG} from Paris.", f"{LONG} from Rome."),
        (f"{LONG}, and this is safe.", f"{LONG}, and this is not safe."),
        (ZH, ZH.replace("会把", "不会把")),
        (f"一共三百次，{ZH}", f"一共五百次，{ZH}"),
    ],
)  # fmt: skip
def test_sentences_that_differ_in_a_number_a_name_or_a_not_are_both_kept(one: str, other: str) -> None:
    assert duplicates(one, other) == [None, None]


def test_duplicates_of_near_duplicates_lead_to_the_first() -> None:
    near = LONG.replace("The cache", "This cache")
    assert duplicates(LONG, near, near) == [None, 0, 0]


def test_ten_thousand_sentences_that_differ_in_one_number_are_all_kept_in_good_time() -> None:
    assert not any(duplicates(*(f"{LONG} number {i} of them." for i in range(10_000)))[1:])
