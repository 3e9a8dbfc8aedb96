"""A tokenizer for models that run elsewhere: no vocabulary at hand, so pieces of words stand for tokens.

Its counts are scaled to the server's own wherever that tells `prompt_tokens`; its ids are stable from run to run,
which is all that comparing two prompts needs.
"""

import re
import zlib

PIECES = re.compile(r"\s?[A-Za-z]{1,5}|\d|[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]|[^\sA-Za-z\d]|\n+")


class WordTokenizer:
    """Cuts text into pieces of words, digits, CJK characters and signs."""

    identity = "word-pieces-1"

    def encode(self, text: str) -> list[int]:
        """One number for each piece; equal pieces have equal numbers."""
        return [zlib.crc32(piece.group().encode("utf-8", "surrogatepass")) for piece in PIECES.finditer(text)]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """The characters of each piece."""
        return [piece.span() for piece in PIECES.finditer(text)]
