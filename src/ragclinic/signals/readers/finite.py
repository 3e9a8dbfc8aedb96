"""Printed numbers that a recording can hold: finite ones, and counts that are no nonsense."""

import math

MAX_COUNT = 10**12


def finite(text: str, scale: float = 1.0) -> float:
    """The number times `scale`.

    Raises:
        ValueError: it is none, or not finite.
    """
    try:
        value = float(text) * scale
    except ValueError:
        raise ValueError(f"{text[:40]!r}; expected a number") from None
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]!r}; expected a finite number")
    return value


def count(text: str) -> int:
    """The number of tokens, layers or the like.

    Raises:
        ValueError: it is none, or larger than any there are.
    """
    if not text.isascii() or not text.isdigit() or len(text) > len(str(MAX_COUNT)):
        raise ValueError(f"{text[:40]!r}; expected a whole number below {MAX_COUNT}")
    return int(text)
