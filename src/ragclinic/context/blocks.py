"""Read plain text, Markdown and reStructuredText as blocks: headings, list items, table rows, code and prose.

Punctuation ends a sentence only in prose, so this comes before cutting sentences. A wrong guess between prose and
code costs little: code that was taken for prose is cut at its full stops, prose taken for code is kept whole.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["heading", "item", "row", "code", "prose"]

WRAPPED_CHARS = 120
"""Text with a longer line was not wrapped by hand: each of its line breaks is meant (columns)."""

TITLE_CHARS = 80
"""A line of its own without a full stop is a title up to this width (columns)."""


class Block(NamedTuple):
    """Characters `start` to `end` of a text, white space trimmed."""

    start: int
    end: int
    kind: Kind


class _Line(NamedTuple):
    start: int
    end: int
    text: str
    indent: int


_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_HASH_HEADING = re.compile(r"\s{0,3}#{1,6}\s+\S")
_RULE = re.compile(r"\s*([^\w\s])\1{2,}\s*$")
_ROW = re.compile(r"\s*(?:\|.*\||\+[-=+]+\+|[=-]{2,}(?:\s+[=-]{2,})+)\s*$")
_ROW_BORDER = re.compile(r"[|+][\s|+:]*[-=][\s|+:=-]*$")
_GRID_BORDER = re.compile(r"\+[-=+]+\+$")
_ITEM = re.compile(
    r"\s*(?:[-*+•·▪◦–—]|[（(]?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4}|[一二三四五六七八九十]{1,3})[.)）])\s+(?=\S)"
    r"|\s*(?:[（(][一二三四五六七八九十\d]{1,3}[）)]|[一二三四五六七八九十]{1,3}、|[①-⑳])\s*(?=\S)"
)
_CODE = re.compile(
    r"\s*(?:>>>|\.\.\.\s|\$\s|@\w|#!|</?\w+[ >]|[)\]}]+[;,:]?\s*$"
    r"|(?:def|class|if|elif|else|for|while|with|try|except|finally|match|case|async)\b.*:(?:\s*#.*)?$"
    r"|(?:if|elif|else|for|while|with|except|class|def)\b[^,]*:\s\S"
    r"|(?:import|from|return|raise|del|yield|await|global|print|pass|break|continue)(?:\s+[\w.*]+|\s*\(.*\))?\s*$"
    r"|(?:[\w.]+|\w+\[[^\]]*\])(?:\s*,\s*[\w.]+)*\s*[-+*/|&%^@:]?=\s*\S|[\w.]+\(.*\)(?:\s*#.*)?\s*$)"
    r"|.*(?:::=|[;{]\s*$)"
)
_SIGNATURE = re.compile(r"(?:\w+ )?[\w.]+\(.*\)$")
_CODE_COMMENT = re.compile(r"\s*(?:#|//|--\s)")
_STOP = re.compile(r"[.!?。！？；;,，、…:：]['\"”’」』）)\]*_`]*$")


def blocks(text: str) -> Iterator[Block]:
    """Give the blocks of a text in order; together they hold every character that is not white space."""
    lines = _lines(text)
    at = 0
    while at < len(lines):
        if not lines[at].text:
            at += 1
            continue
        last, kind = _block(lines, at)
        if kind == "prose":
            for first, end in _meant_breaks(lines, at, last):
                yield Block(lines[first].start, lines[end].end, _prose_or_title(lines, first, end))
        else:
            yield Block(lines[at].start, lines[last].end, kind)
        at = last + 1


def _lines(text: str) -> list[_Line]:
    """Give the lines without the white space around them; a blank line has the text ''."""
    found, at = [], 0
    for whole in text.splitlines(keepends=True):
        bare = whole.strip()
        indent = len(whole) - len(whole.lstrip()) if bare else 0
        found.append(_Line(at + indent, at + indent + len(bare), bare, indent))
        at += len(whole)
    return found


def _block(lines: list[_Line], at: int) -> tuple[int, Kind]:
    """Give the last line and the kind of the block that begins at line `at`."""
    line = lines[at].text
    fence = _FENCE.match(line)
    if fence:
        return _closing_fence(lines, at, fence.group(1)), "code"
    if _HASH_HEADING.match(line):
        return at, "heading"
    if _RULE.match(line):
        boxed = at + 2 < len(lines) and lines[at + 1].text and lines[at + 2].text == line
        return (at + 2, "heading") if boxed else (at, "code")
    if _ROW.match(line):
        return _table(lines, at)
    if _underlined(lines, at):
        return at + 1, "heading"
    last = _last_of_paragraph(lines, at)
    if _ITEM.match(line):
        return last, "item"
    if not _is_code(lines, at, last):
        return last, "prose"
    return last, "heading" if _is_signature(lines, at, last) else "code"


def _closing_fence(lines: list[_Line], at: int, fence: str) -> int:
    """Give the line that closes the fence opened at `at`, or the last line of the text."""
    for last in range(at + 1, len(lines)):
        if lines[last].text.startswith(fence):
            return last
    return len(lines) - 1


def _table(lines: list[_Line], at: int) -> tuple[int, Kind]:
    """Give the last line of a table's head, of its next row, or of a whole table without row marks.

    The head with its border is a heading over the rows. In a grid a row goes on to the next border.
    """
    begins = at == 0 or not _ROW.match(lines[at - 1].text)
    if _GRID_BORDER.match(lines[at].text):
        last = _next_border(lines, at + 1)
        at_end = last + 1 >= len(lines) or not _ROW.match(lines[last + 1].text)
        return (last, "heading") if begins and not at_end else (last if at_end else max(at, last - 1), "row")
    if lines[at].text[0] in "=-":
        return _last_of_paragraph(lines, at, whole=True), "row"
    bordered = at + 1 < len(lines) and _ROW.match(lines[at + 1].text) and _ROW_BORDER.match(lines[at + 1].text)
    return (at + 1, "heading") if begins and bordered else (at, "row")


def _next_border(lines: list[_Line], at: int) -> int:
    """Give the next line of a grid, from `at` on, that is a border; without one, the last line of the table."""
    while at < len(lines) and _ROW.match(lines[at].text):
        if _ROW_BORDER.match(lines[at].text):
            return at
        at += 1
    return at - 1


def _underlined(lines: list[_Line], at: int) -> bool:
    """Tell whether the next line underlines this one."""
    return at + 1 < len(lines) and len(lines[at].text) <= WRAPPED_CHARS and bool(_RULE.match(lines[at + 1].text))


def _last_of_paragraph(lines: list[_Line], at: int, whole: bool = False) -> int:
    """Give the last line before a blank one or (unless the block is whole anyway) before another block."""
    whole = whole or "::=" in lines[at].text
    last = at
    while last + 1 < len(lines) and lines[last + 1].text:
        line = lines[last + 1].text
        if not whole and (_begins_block(line) or _underlined(lines, last + 1)):
            break
        last += 1
    return last


def _begins_block(line: str) -> bool:
    """Tell whether a line cannot go on with a paragraph."""
    return any(form.match(line) for form in (_FENCE, _HASH_HEADING, _RULE, _ITEM, _ROW))


def _is_code(lines: list[_Line], first: int, last: int) -> bool:
    """Tell whether half of the lines or more look like code or grammar; comments count for neither side."""
    told = [line.text for line in lines[first : last + 1] if not _CODE_COMMENT.match(line.text)]
    return 2 * sum(bool(_CODE.match(line)) for line in told) >= len(told)


def _is_signature(lines: list[_Line], first: int, last: int) -> bool:
    """Tell whether code heads the indented text below it, as `object.__new__(cls)` does its description."""
    below = next((line for line in lines[last + 1 : last + 3] if line.text), None)
    if below is None or below.indent <= lines[first].indent:
        return False
    return first == last or all(_SIGNATURE.match(line.text) for line in lines[first : last + 1])


def _width(text: str) -> int:
    """Give the columns a text takes: a character of the East Asian blocks takes two."""
    return len(text) if text.isascii() else sum(1 + (c >= "\u2e80") for c in text)


def _meant_breaks(lines: list[_Line], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Cut a paragraph at the line breaks that were meant: where the next word would still have fitted."""
    widths = [_width(line.text) + line.indent for line in lines[first : last + 1]]
    widest = max(widths)
    begin = first
    for at in range(first, last):
        following = lines[at + 1].text
        word = 2 if following[0] >= "\u2e80" else len(following.split(maxsplit=1)[0])
        if widest > WRAPPED_CHARS or widths[at - first] + 1 + word < 0.8 * max(widest, 50):
            yield begin, at
            begin = at + 1
    yield begin, last


def _prose_or_title(lines: list[_Line], first: int, last: int) -> Kind:
    """Take a short line that stands alone and has no full stop, but something under it, for a title."""
    line = lines[first]
    if first != last or _STOP.search(line.text) or _width(line.text) > TITLE_CHARS:
        return "prose"
    alone_above = first == 0 or not lines[first - 1].text
    alone_below = last + 1 < len(lines) and (not lines[last + 1].text or lines[last + 1].indent > line.indent)
    something_below = any(below.text for below in lines[last + 1 : last + 3])
    return "heading" if alone_above and alone_below and something_below else "prose"
