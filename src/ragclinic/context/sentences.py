"""Cut text into sentences, English and Chinese alike, in linear time.

Offsets are in characters. Headings, list items, table rows and code are kept whole up to a bounded length; a
sentence is never cut at an abbreviation, a decimal, a version, an address or a dotted name. Where it is not clear
whether a sentence ends, it goes on: two sentences kept together do less harm than half of one.
"""

import re
import unicodedata
from collections.abc import Iterator

from ragclinic.context.blocks import Block, blocks

MAX_CHARS = 600
"""A longer sentence or block of code is cut at white space (characters; a CJK character counts as three)."""

ITEM_CHARS = 300
"""A longer list item is cut into its sentences."""

CLAUSE_CHARS = 60
"""A Chinese semicolon ends a sentence only behind so many characters: before, its clauses need each other."""

_CJK_FROM = "\u2e80"
_CJK_WEIGHT = 3

# Marks that end a sentence whatever follows; then marks that need white space or CJK text behind them.
_END = re.compile(r"[。！？；｡।॥۔؟]+[.!?…]*|…+|[.!?]+")
_CLOSERS = frozenset("”’」』）)]】》›»}*_`")
_QUOTES = frozenset("\"'")
_TITLE = re.compile(
    r"(?:^|[\s(\[\"'“‘/-])(?:Mrs?|Ms|Dr|Prof|Sr|Jr|St|Mt|Gen|Col|Lt|Sgt|Capt|Rev|Hon|Gov|Sen|Rep|Inc|Ltd|Co|Corp|Bros"
    r"|e\.g|i\.e|cf|vs|al|approx|ca|viz|[A-Za-z](?:\.[A-Za-z])*)$"
)
_NUMBERED = re.compile(
    r"(?:^|[\s(\[])(?:Nos?|Vols?|pp?|Figs?|Eqs?|Secs?|Ch|Chap|Arts?|Ed|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)$"
)
_LOOK_CHARS = 16


def split(text: str) -> list[tuple[int, int]]:
    """Give the (start, end) of every sentence, in order and never overlapping.

    Spans begin and end on a character that is not white space, and together hold every such character.
    """
    return [(unit.start, unit.end) for unit in units(text)]


def sentence_texts(text: str) -> list[str]:
    """Give each sentence as an embedder should read it: line breaks and runs of white space as single spaces."""
    return [" ".join(text[start:end].split()) for start, end in split(text)]


def units(text: str) -> list[Block]:
    """Give the spans of `split` with the kind of block that each is or stands in."""
    found: list[Block] = []
    for block in blocks(text):
        whole = block.kind != "prose" and not (block.kind == "item" and block.end - block.start > ITEM_CHARS)
        for start, end in [(block.start, block.end)] if whole else _sentences(text, block.start, block.end):
            found.extend(Block(*piece, block.kind) for piece in _bounded(text, start, end))
    return found


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut prose at its sentence ends."""
    begin = start
    for mark in _END.finditer(text, start, end):
        after = _past_closers(text, begin, mark, end)
        if after > begin and _ends(text, begin, mark, after, end):
            yield begin, after
            begin = after
    yield begin, end


def _past_closers(text: str, begin: int, mark: re.Match[str], end: int) -> int:
    """Give where the quotes and brackets that close behind a mark end.

    A straight quote closes only if the sentence so far has an open one: it opens the next sentence otherwise.
    """
    after = mark.end()
    while after < end and after < mark.end() + _LOOK_CHARS:
        char = text[after]
        closes = char in _CLOSERS or (
            char in _QUOTES and text.count(char, max(begin, after - MAX_CHARS), after) % 2 == 1
        )
        if not closes:
            break
        after += 1
    return after


def _ends(text: str, begin: int, mark: re.Match[str], after: int, end: int) -> bool:
    """Tell whether a mark ends the sentence that began at `begin`."""
    first, following = mark.group()[0], text[after : after + _LOOK_CHARS].lstrip()[:1]
    if after >= end or not following:
        return True
    if first == "；":
        return after - begin >= CLAUSE_CHARS
    if first in "。！？｡।॥۔؟":
        return True
    if first == "…":
        return following >= _CJK_FROM or following.isupper()
    if not text[after].isspace():
        # 真的吗?是的 and 他走了.她 end here, 系列1.由于 and 3.14 do not.
        return following >= _CJK_FROM and text[mark.start() - 1 : mark.start()] >= _CJK_FROM
    if following.islower():
        return False
    return mark.group() != "." or not _is_abbreviation(text, begin, mark.start(), following)


def _is_abbreviation(text: str, begin: int, dot: int, following: str) -> bool:
    """Tell whether the full stop at `dot` belongs to an abbreviation or to the number of a list item."""
    before = text[max(begin, dot - _LOOK_CHARS) : dot]
    if dot - begin <= 3 and before.strip().isalnum() and (before.strip().isdigit() or len(before.strip()) == 1):
        return True
    if _TITLE.search(before):
        return not before.endswith(" I")
    return following.isdigit() and bool(_NUMBERED.search(before))


def _bounded(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Trim a span and cut it where it grows past MAX_CHARS: at a line, a space, a comma, or anywhere."""
    while start < end:
        while start < end and text[start].isspace():
            start += 1
        reach = _reach(text, start, end)
        cut = end if reach >= end else _cut(text, start, reach)
        stop = cut
        while stop > start and text[stop - 1].isspace():
            stop -= 1
        if stop > start:
            yield start, stop
        start = cut


def _reach(text: str, start: int, end: int) -> int:
    """Give how far MAX_CHARS reach from `start`."""
    piece = text[start : min(end, start + MAX_CHARS)]
    if end - start <= MAX_CHARS // _CJK_WEIGHT or (piece.isascii() and end - start <= MAX_CHARS):
        return end
    weight = 0
    for offset, char in enumerate(piece):
        weight += _CJK_WEIGHT if char >= _CJK_FROM else 1
        if weight > MAX_CHARS:
            return start + offset
    return start + len(piece)


def _cut(text: str, start: int, reach: int) -> int:
    """Give the best place for a cut in the second half of start..reach."""
    half = start + (reach - start) // 2
    for mark in ("\n", " ", "\t", "\u3000", "，", "、", "：", ",", ";"):
        at = text.rfind(mark, half, reach)
        if at >= 0:
            return at + 1
    cut = reach
    while cut > half and _joins(text[cut - 1], text[cut]):
        cut -= 1
    return cut if cut > half else reach


def _joins(left: str, right: str) -> bool:
    """Tell whether two characters are seen as one: an accent, an emoji of several parts."""
    return left == "\u200d" or right == "\u200d" or unicodedata.category(right) in ("Mn", "Me", "Sk")
