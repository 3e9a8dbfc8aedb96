"""Cut text into sentences, English and Chinese alike, in linear time.

Text is read line by line into blocks first (headings, list items, table rows,
code, paragraphs), since punctuation means nothing outside prose; only prose is
then cut at sentence ends. Offsets are in characters of the text given.
"""

import re
from collections.abc import Iterator

MAX_CHARS = 600
"""A longer unit is cut at whitespace (characters)."""

_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_UNDERLINE = re.compile(r"\s*([=\-~*^\"'`+#.:_])\1{2,}\s*$")
_LIST_ITEM = re.compile(r"\s*(?:[-*+•·]|\(?(?:\d{1,3}|[a-zA-Z])[.)]|[（(]?[一二三四五六七八九十]{1,3}[）)、.])\s*(?<=[\s、）])\S")
_TABLE_ROW = re.compile(r"\s*(?:\||\+[-=]{2,}[-=+]*\s*$)|[^\t]*\S\t+\S|\s*[=-]{2,}(?:\s+[=-]{2,})+\s*$")
_CODE_LINE = re.compile(
    r"\s*(?:>>>|\.\.\. |\$ |@\w|#!|(?:def|class|if|elif|for|while|with|try|return|import|from|raise|print)\b.*[:()]\s*$"
    r"|(?:import|from|return|raise|del|yield|await)\s+\w[\w.]*\s*$|[\w.\[\]\"', ]+ [-+*/|&]?= \S|[\w.]+\([^)]*\)\s*$|[})\]];?\s*$)"
    r"|.*(?:::=|[;{]\s*$)"
)
_END = re.compile(r"([.!?]+|[。！？；…]+)([\"'”’」』）)\]】》*_`]*)")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'])(?:e\.g|i\.e|cf|vs|etc|et al|al|approx|ca|Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|Mt|Gen|Col|Lt|Sgt|Capt|Rev|Hon|Gov|Sen|Rep"
    r"|No|Nos|Vol|pp|p|Fig|Figs|Eq|Sec|Ch|Ed|Eds|Inc|Ltd|Co|Corp|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec|[A-Za-z](?:\.[A-Za-z])*)$"
)


def split(text: str) -> list[tuple[int, int]]:
    """Give the (start, end) of every sentence, in order and never overlapping.

    Spans begin and end on a character that is not whitespace, and together
    hold every such character of the text. None is longer than MAX_CHARS.
    """
    spans: list[tuple[int, int]] = []
    for start, end, prose in _blocks(text):
        cuts = _prose(text, start, end) if prose else iter(((start, end),))
        for piece in cuts:
            spans.extend(_bounded(text, *piece))
    return spans


def _lines(text: str) -> list[tuple[int, int]]:
    """Give the span of every line, its line break left out."""
    spans, at = [], 0
    for line in text.splitlines(keepends=True):
        spans.append((at, at + len(line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"))))
        at += len(line)
    return spans


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Give (start, end, is prose) of every block of lines."""
    lines = _lines(text)
    at = 0
    while at < len(lines):
        start, end = lines[at]
        line = text[start:end]
        if not line.strip():
            at += 1
            continue
        fence = _FENCE.match(line)
        if fence:
            last = at + 1
            while last < len(lines) and not text[slice(*lines[last])].strip().startswith(fence.group(1)):
                last += 1
            last = min(last, len(lines) - 1)
            yield start, lines[last][1], False
            at = last + 1
            continue
        below = text[slice(*lines[at + 1])] if at + 1 < len(lines) else ""
        if below and _UNDERLINE.match(below) and not _TABLE_ROW.match(line):
            yield start, lines[at + 1][1], False
            at += 2
        elif _HEADING.match(line) or _TABLE_ROW.match(line) or _UNDERLINE.match(line):
            yield start, end, False
            at += 1
        else:
            last = _last_of_block(text, lines, at)
            yield start, lines[last][1], not _is_code(text, lines, at, last)
            at = last + 1


def _last_of_block(text: str, lines: list[tuple[int, int]], at: int) -> int:
    """Give the index of the last line that goes on with the block begun at `at`."""
    last = at
    while last + 1 < len(lines):
        line = text[slice(*lines[last + 1])]
        if not line.strip() or any(form.match(line) for form in (_FENCE, _HEADING, _LIST_ITEM, _TABLE_ROW, _UNDERLINE)):
            break
        last += 1
    return last


def _is_code(text: str, lines: list[tuple[int, int]], first: int, last: int) -> bool:
    """Tell whether the lines read as code or grammar: half of them look like it."""
    looks = sum(bool(_CODE_LINE.match(text[slice(*lines[at])])) for at in range(first, last + 1))
    return 2 * looks >= last + 1 - first


def _prose(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a block of prose at its sentence ends."""
    at = start
    for mark in _END.finditer(text, start, end):
        if _ends_sentence(text, mark, end):
            yield at, mark.end()
            at = mark.end()
    if at < end:
        yield at, end


def _ends_sentence(text: str, mark: re.Match[str], end: int) -> bool:
    """Tell whether the punctuation found ends a sentence, judged by what stands around it."""
    if mark.group(1)[0] in "。！？；…":
        return True
    after = mark.end()
    if after >= end:
        return True
    if not text[after].isspace():
        return False
    following = text[after : after + 40].lstrip()
    if following[:1].islower():
        return False
    if mark.group(1) == ".":
        before = text[max(0, mark.start() - 12) : mark.start()]
        if _ABBREVIATION.search(before) and not before.endswith(" I"):
            return False
        list_number = text[max(0, mark.start() - 3) : mark.start()].strip()
        if list_number.isdigit() and mark.start() - len(list_number) <= 0:
            return False
    return True


def _bounded(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Trim the whitespace off a span and cut it wherever it grows past MAX_CHARS."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    while end - start > MAX_CHARS:
        cut = start + MAX_CHARS
        while cut > start + MAX_CHARS // 2 and not text[cut].isspace():
            cut -= 1
        if not text[cut].isspace():
            cut = start + MAX_CHARS
        stop = cut
        while stop > start and text[stop - 1].isspace():
            stop -= 1
        yield start, stop
        start = cut
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield start, end
