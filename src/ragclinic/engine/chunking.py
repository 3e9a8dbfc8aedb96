"""Cut a document into chunks of so many tokens, each with exact character offsets.

The text is tokenised once, in blocks, and a window slides over the tokens: memory stays flat however long the
document is. A cut never falls inside a character as a reader sees it (a letter with its accents, an emoji with its
skin tone, the parts of a family), and chunks begin and end on something visible.

    tokens   |----------- size -----------|
                             |- overlap --|----------- ...
"""

import hashlib
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from ragclinic.engine.settings import ChunkingSettings
from ragclinic.engine.tokenizer import Tokenizer
from ragclinic.errors import BadInput

_BLOCK_CHARS = 65_536
_MAX_CHARACTER = 32
"""Code points; a longer run of accents on one letter is text made to break programs, and may be cut."""
_FLAG_LETTERS = "".join(chr(code) for code in range(0x1F1E6, 0x1F200))
"""Two of them make one flag."""
_VISIBLE = re.compile(r"\S")
_JOINER = "\u200d"
_WORD_END = re.compile(r"(?<=[^\W\d_])(?=[\s.,;:!?，。；：！？、])")
"""Where every tokenizer here starts a new word anyway, so that a block's tokens are the whole text's."""


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """One chunk: `text` is the document's text from `start` to `end` (characters)."""

    chunk_id: str
    doc: str
    start: int
    end: int
    tokens: int
    text: str


def cut(doc: str, text: str, settings: ChunkingSettings, tokenizer: Tokenizer) -> Iterator[ChunkRecord]:
    """The chunks of a document in order; together they hold every visible character of it.

    Raises:
        BadInput: the overlap is not smaller than the size.
    """
    size, overlap = settings.size_tokens, settings.overlap_tokens
    if overlap >= size:
        raise BadInput(
            f"chunking.overlap_tokens = {overlap}: expected less than chunking.size_tokens = {size}; lower it"
        )
    starts: list[int] = []
    ends: list[int] = []
    blocks = _token_spans(text, tokenizer)
    start = held = 0
    while visible := _VISIBLE.search(text, start):
        start = visible.start()
        gone = bisect_right(ends, start)
        del starts[:gone], ends[:gone]
        while len(starts) <= size and (block := next(blocks, None)):
            later = [span for span in block if span[1] > start]
            starts.extend(span[0] for span in later)
            ends.extend(span[1] for span in later)
        end, chunk = _fitting(doc, text, start, starts, size, tokenizer)
        if chunk.end > held:  # else there is only white space behind the chunk before
            yield chunk
            held = chunk.end
        if end == len(text):
            return
        start = _next_start(text, start, end, starts, ends, overlap)


def _fitting(
    doc: str, text: str, start: int, starts: list[int], size: int, tokenizer: Tokenizer
) -> tuple[int, ChunkRecord]:
    """The end of the longest piece from `start` on that has at most `size` tokens, and its chunk.

    A word cut off from the space before it can need a token or two more than it did in the running text, so that
    the piece is counted again on its own.
    """
    count = size
    while True:
        end = len(text) if len(starts) <= count else _back_to_character(text, start, max(starts[count], start + 1))
        piece = text[start:end].rstrip()
        tokens = len(tokenizer.encode(piece))
        if tokens <= size or count == 1:
            break
        count = max(1, min(count, len(starts)) - (tokens - size))
    key = hashlib.sha256(f"{doc}\0{start}\0{piece}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return end, ChunkRecord(key, doc, start, start + len(piece), tokens, piece)


def _next_start(text: str, start: int, end: int, starts: list[int], ends: list[int], overlap: int) -> int:
    """Where the chunk after `[start, end)` begins: at most `overlap` tokens before its end, and after `start`."""
    if not overlap:
        return end
    last = bisect_left(starts, end) - 1
    return min(end, max(start + 1, _on_to_character(text, ends[max(0, last - overlap)], end)))


def _token_spans(text: str, tokenizer: Tokenizer) -> Iterator[list[tuple[int, int]]]:
    """The tokens' character spans, a block of text at a time."""
    at = 0
    while at < len(text):
        boundary = _WORD_END.search(text, at + _BLOCK_CHARS, at + 2 * _BLOCK_CHARS)
        stop = boundary.start() if boundary else min(len(text), at + 2 * _BLOCK_CHARS)
        if spans := tokenizer.offsets(text[at:stop]):
            yield [(at + start, at + end) for start, end in spans]
        at = stop


def _back_to_character(text: str, after: int, at: int) -> int:
    """The last place up to `at` that is between two characters, if one is near and after `after`."""
    for place in range(at, max(after, at - _MAX_CHARACTER), -1):
        if not _inside_character(text, place):
            return place
    return at


def _on_to_character(text: str, at: int, before: int) -> int:
    """The first place from `at` on that is between two characters, if one is near and not past `before`."""
    for place in range(at, min(before, at + _MAX_CHARACTER)):
        if not _inside_character(text, place):
            return place
    return at


def _inside_character(text: str, at: int) -> bool:
    """Whether the code points before and after this place belong to one character."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if after < "\u0300":  # quick for most text
        return after == "\n" and before == "\r"
    if (
        unicodedata.category(after)[0] == "M"
        or _JOINER in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    ):
        return True
    nearby = text[max(0, at - _MAX_CHARACTER) : at]
    return after in _FLAG_LETTERS and (len(nearby) - len(nearby.rstrip(_FLAG_LETTERS))) % 2 == 1
