"""Finding evidence whatever the line breaks."""

from hypothesis import given
from hypothesis import strategies as st

from ragclinic.corpora import find_span

WORDS = st.lists(st.text("ab(.*+缓存“", min_size=1, max_size=6), min_size=1, max_size=8)
SPACE = st.sampled_from([" ", "\n", "  ", "\n   ", "\t"])


@given(words=WORDS, data=st.data())
def test_a_span_is_found_however_its_lines_are_broken(words: list[str], data: st.DataObject) -> None:
    """What comes back is the text's own spelling of it, white space and all."""
    broken = words[0] + "".join(data.draw(SPACE) + word for word in words[1:])
    span = find_span(f"# {broken} #", " ".join(words))
    assert span is not None
    assert span.split() == words
    assert span in broken


@given(text=st.text(), wanted=st.text())
def test_what_is_found_is_part_of_the_text(text: str, wanted: str) -> None:
    """Never anything else, whatever is asked."""
    span = find_span(text, wanted)
    assert span is None or (span in text and span.strip() == span)


def test_a_line_may_break_after_a_hyphen() -> None:
    """The topics are wrapped at hyphens too."""
    assert find_span("the built-\nin names", "built-in names") == "built-\nin names"


def test_other_words_are_not_found() -> None:
    """White space is forgiven, spelling is not."""
    assert find_span("the built in names", "built-in names") is None


def test_nothing_is_found_for_nothing() -> None:
    """An empty wish has no span."""
    assert find_span("text", " \n") is None
