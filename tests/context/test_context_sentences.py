"""Sentences of English and Chinese, and of what is neither."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragclinic.context.sentences import MAX_CHARS, sentence_texts, split, units

MARKS = '。！？；….!?"”“’)） \n\t|-#_*\u200d\u0301\u3000\u2028\x0b'
WORDS = "# |- |1. |```|::=|=====|Word|it|Dr|3.14|北京|他说|x = 1|e.g.|👨‍👩‍👧|🇨🇳|مرحبا|שלום|    |\n\n|\r\n|| a |"
PIECES = st.sampled_from([*MARKS, *WORDS.split("|")])


def texts_of(text: str) -> list[str]:
    return [text[start:end] for start, end in split(text)]


@given(st.one_of(st.text(), st.lists(PIECES, max_size=60).map("".join)))
def test_spans_are_in_order_trimmed_and_hold_every_visible_character(text: str) -> None:
    at = 0
    for start, end in split(text):
        assert at <= start < end <= len(text)
        assert not text[at:start].strip()
        assert not text[start].isspace()
        assert not text[end - 1].isspace()
        assert end - start <= MAX_CHARS or "\n" in text[start:end]
        at = end
    assert not text[at:].strip()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One here. Two here! Three?", ["One here.", "Two here!", "Three?"]),
        ("It costs 3.14 dollars in v1.2.3. Fine.", ["It costs 3.14 dollars in v1.2.3.", "Fine."]),
        ("Dr. Smith met Mr. J. R. Jones, e.g. on Jan. 5. Then he left.",
         ["Dr. Smith met Mr. J. R. Jones, e.g. on Jan. 5.", "Then he left."]),
        ("See https://a.b/c?d=1. Use os.path or __init__.py here. Done.",
         ["See https://a.b/c?d=1.", "Use os.path or __init__.py here.", "Done."]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("Was it? No. It was.", ["Was it?", "No.", "It was."]),
        ("It is I. You know.", ["It is I.", "You know."]),
        ("Wait ... what happened? Nothing.", ["Wait ... what happened?", "Nothing."]),
    ],
)  # fmt: skip
def test_english_ends_at_full_stops_but_not_inside_names_and_numbers(text: str, sentences: list[str]) -> None:
    assert texts_of(text) == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("北京是首都。它很大！真的吗？是的", ["北京是首都。", "它很大！", "真的吗？", "是的"]),
        ("“走吧。”他说。然后走了……没回来。", ["“走吧。”", "他说。", "然后走了……", "没回来。"]),
        ('他说："你好。"然后走了。"再见！"她说。', ['他说："你好。"', "然后走了。", '"再见！"', "她说。"]),
        ("圆周率是3.14，见系列1.由于版本2.0。好的。", ["圆周率是3.14，见系列1.由于版本2.0。", "好的。"]),
        ("真的吗?是的!他走了.她也走了.", ["真的吗?", "是的!", "他走了.", "她也走了."]),
        ("用Python写。Then English. 再写中文。", ["用Python写。", "Then English.", "再写中文。"]),
    ],
)  # fmt: skip
def test_chinese_needs_no_spaces_and_keeps_closing_quotes(text: str, sentences: list[str]) -> None:
    assert texts_of(text) == sentences


def test_other_scripts_end_at_their_own_marks() -> None:
    assert texts_of("هل هذا صحيح؟ نعم هو كذلك.") == ["هل هذا صحيح؟", "نعم هو كذلك."]
    assert texts_of("यह सही है। धन्यवाद।") == ["यह सही है।", "धन्यवाद।"]


def test_hard_wrapped_lines_are_one_sentence_and_short_lines_are_several() -> None:
    wrapped = (
        "This paragraph was wrapped by hand at about\nfifty columns, as plain text documents are. It\nhas two."
    )
    assert len(split(wrapped)) == 2
    assert texts_of("Name: Ada\nBorn: 1815\nDied: 1852") == ["Name: Ada", "Born: 1815", "Died: 1852"]


def test_markdown_keeps_headings_items_rows_and_code_whole() -> None:
    text = (
        "# Title. Two\n\nOne. Two.\n- First. Item.\n- Second\n\n"
        "| a | b |\n|---|---|\n| 1. | 2. |\n\n```py\nx = 1.\n\ny\n```"
    )
    assert [(unit.kind, text[unit.start : unit.end]) for unit in units(text)] == [
        ("heading", "# Title. Two"),
        ("prose", "One."),
        ("prose", "Two."),
        ("item", "- First. Item."),
        ("item", "- Second"),
        ("heading", "| a | b |\n|---|---|"),
        ("row", "| 1. | 2. |"),
        ("code", "```py\nx = 1.\n\ny\n```"),
    ]


def test_plain_documentation_keeps_titles_grammar_and_signatures_whole() -> None:
    text = (
        'The "with" statement\n********************\n\n'
        '   with_stmt ::= "with" item ":" suite\n   item      ::= expression ["as" target]\n\n'
        "object.__enter__(self)\n\n   Enter the context. Return it.\n\n"
        "      if x:\n          return 1.\n"
    )
    assert [unit.kind for unit in units(text)] == ["heading", "code", "heading", "prose", "prose", "code"]


def test_grid_tables_have_rows_between_borders() -> None:
    text = "+---+---+\n| A | B |\n+===+===+\n| 1 | 2 |\n|   | 3 |\n+---+---+\n| 4 | 5 |\n+---+---+\nAfter it."
    assert [unit.kind for unit in units(text)] == ["heading", "row", "row", "row", "prose"]


def test_a_long_list_item_is_cut_into_its_sentences() -> None:
    item = "- " + "This item says something at length. " * 20
    assert len(split(item)) == 20


@pytest.mark.parametrize("text", ["word " * 5000, "无标点" * 3000, "x" * 9000, "e\u0301" * 5000, "👨‍👩‍👧" * 1000])
def test_a_giant_sentence_is_cut_at_a_bounded_length_and_never_inside_a_character(text: str) -> None:
    pieces = texts_of(text)
    assert max(map(len, pieces)) <= MAX_CHARS
    assert all(piece[0] not in "\u0301\u200d" for piece in pieces)
    assert "".join(pieces) == text.replace(" ", "") if " " not in text else len(pieces) > 1


def test_sentence_texts_have_single_spaces() -> None:
    assert sentence_texts("One\u3000two.  Three\tfour.") == ["One two.", "Three four."]


SHORT_FORMS = (
    "a", ". ", '"', "。", "\n", "- ", "=", "| a ", "a = ", "x\n", "((((", "``` \n", '。"', "Dr. ", "(a ", "a.b.",
    "...\n", 'a."b ', "+-", "+-+\n", "|a|\n", "a:\n", "ab\n  c\n\n", "「", "。」", "\u200d", "word, ", "字，",
)  # fmt: skip


@pytest.mark.parametrize("form", SHORT_FORMS, ids=repr)
def test_time_is_linear_whatever_the_text(form: str) -> None:
    times = []
    for size in (20_000, 80_000):
        text = form * (size // len(form))
        begin = time.process_time()
        split(text)
        times.append(time.process_time() - begin)
    assert times[1] < 12 * times[0] + 0.2, "four times the text took more than twelve times as long"


def test_a_semicolon_ends_a_chinese_sentence_only_when_it_is_long() -> None:
    short = "默认 5 分钟之后卸载模型；设为 -1 就一直留着。"
    long = "这是很长的一句话，" * 7 + "说完了；后面又是一句。"
    assert [short[a:b] for a, b in split(short)] == [short]
    assert len(split(long)) == 2
