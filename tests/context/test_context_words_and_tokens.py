"""Words by which texts are found, and tokens without a tokenizer."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.context import estimate_tokens
from ragclinic.context.asked import asked, holds_number, names_held
from ragclinic.context.words import terms

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def test_identifiers_are_found_whole_and_in_parts() -> None:
    assert terms("__enter__ ValueError os.path") == [
        *("__enter__", "enter"),
        *("valueerror", "value", "error"),
        *("os.path", "os", "path"),
    ]


def test_plurals_and_possessives_find_the_singular_and_other_words_stay() -> None:
    assert terms("Cities' classes, boxes and Python’s chunks") == [
        "city",
        "class",
        "box",
        "and",
        "python",
        "chunk",
    ]
    assert terms("bus this glass don't") == ["bus", "this", "glass", "don't"]


def test_chinese_words_are_pairs_of_characters_beside_english_ones() -> None:
    assert terms("用KV缓存的好") == ["用", "kv", "缓存", "存的", "的好"]


@pytest.mark.parametrize(
    ("question", "number", "name"),
    [
        ("when did the war end", True, False),
        ("how many bytes does a token take", True, False),
        ("who wrote the song", False, True),
        ("where is the Eiffel tower", False, True),
        ("why is it slow", False, False),
        ("战争是什么时候结束的？", True, False),
        ("一共有多少人？", True, False),
        ("为什么很慢？", False, False),
    ],
)
def test_a_question_tells_whether_it_wants_a_number_or_a_name(question: str, number: bool, name: bool) -> None:
    assert asked(question) == (number, name)


def test_numbers_are_seen_in_figures_and_in_chinese_characters() -> None:
    assert holds_number("in 1901")
    assert holds_number("一共三十个")
    assert not holds_number("没有数字")


def test_names_are_capitalised_words_inside_a_sentence() -> None:
    assert names_held("The first words do not count.") == 0.0
    assert names_held("It was Ada Lovelace.") == 0.5


@given(st.text())
def test_an_estimate_is_never_negative_and_zero_only_for_nothing_to_see(text: str) -> None:
    assert estimate_tokens(text) >= (1 if text.strip() else 0)


def test_estimates_follow_the_known_counts_of_smollm2() -> None:
    # Counted with the tokenizer of SmolLM2-135M-Instruct.
    known = {
        "The quick brown fox jumps over the lazy dog. It then sleeps for 12 hours in the warm afternoon sun.": 25,
        "这座大桥于一九五七年建成通车，全长约1670米，是长江上第一座公路铁路两用桥。": 71,
    }
    for text, tokens in known.items():
        assert estimate_tokens(text) == pytest.approx(tokens, rel=0.15)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the public data sets in ../shared/data")
def test_estimates_keep_the_characters_a_token_measured_on_public_data() -> None:
    with gzip.open(DATA / "nq" / "nq-open-even.jsonl.gz", "rt", encoding="utf-8") as lines:
        english = [json.loads(next(lines))["ctxs"][0]["text"] for _ in range(200)]
    paragraphs = json.loads((DATA / "cmrc2018" / "dev.json").read_text("utf-8"))["data"][:100]
    chinese = [p["context"] for article in paragraphs for p in article["paragraphs"]]
    for texts, chars_a_token in ((english, 4.17), (chinese, 0.57)):
        rate = sum(map(len, texts)) / sum(map(estimate_tokens, texts))
        assert rate == pytest.approx(chars_a_token, rel=0.06)
