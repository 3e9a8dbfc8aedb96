"""Tokens of a text, by a model's own tokenizer where there is one, estimated where there is none."""

import re
from collections.abc import Callable

CountTokens = Callable[[str], int]
"""Gives how many tokens a text takes; a tokenizer's own count is `lambda text: len(tokenizer.encode(text))`."""

# What a byte-level BPE tokenizer of 49,152 entries (SmolLM2) spends on each kind of piece, by least squares.
_ASCII_COSTS = (
    (re.compile(r"[A-Za-z]+"), 0.90),
    (re.compile(r"[A-Za-z]"), 0.036),
    (re.compile(r"\d"), 1.24),
    (re.compile(r"[!-/:-@\[-`{-~]+"), 1.13),
    (re.compile(r"\s{2,}|\n"), 1.34),
)
_OTHER_COSTS = (
    (re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"), 1.99),
    (re.compile(r"[\u2010-\u206f\u3000-\u303f\uff00-\uffef]"), 1.09),
    (re.compile(r"[^\x00-\x7f\u2010-\u206f\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]"), 1.50),
)


def estimate_tokens(text: str) -> int:
    """Give about how many tokens of SmolLM2 a text takes, without its tokenizer.

    Measured against the real one on texts of 200 to 600 characters: the mean error is -5 to +5 % by kind of text,
    and nine of ten texts lie within -15 % (medical abstracts) and +10 % in English (Wikipedia, Python reference,
    10-K reports, chats), within -10 % and +11 % in Chinese (CMRC 2018, DRCD, web news). A model made for
    Chinese spends about a third of it on Chinese: give its own tokenizer.
    """
    costs = _ASCII_COSTS if text.isascii() else _ASCII_COSTS + _OTHER_COSTS
    return round(sum(cost * len(piece.findall(text)) for piece, cost in costs)) or int(
        not text.isspace() and bool(text)
    )
